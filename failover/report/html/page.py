"""Renders a page: templates with everything escaped, styles and script inline, nothing loaded from anywhere."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from failover.report.explain import entries
from failover.report.inert import inert_json

if TYPE_CHECKING:
    import jinja2

_INERT = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "'": "\\u0027"}


class Answer(NamedTuple):
    """Is one of the first questions with its answer; ``tone``: good, warn, bad or ""."""

    label: str
    question: str
    text: str
    tone: str = ""


class Verdict(NamedTuple):
    """Is the first sentence of a page, and the word and tone it is summed up in."""

    tone: str
    word: str
    sentence: str


class Note(NamedTuple):
    """Is a finding or a warning with what to do about it."""

    severity: str
    code: str
    message: str
    remedy: str
    subject: str = ""


def render(template: str, context: dict[str, Any]) -> str:
    """Renders one of this package's templates; the content security policy allows its own style and script alone."""
    import markupsafe

    style, script = _asset("page.css"), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    # Both are files of this package; what comes from outside goes through autoescape and ``island``.
    inline = {"style": markupsafe.Markup(style), "script": markupsafe.Markup(script)}  # noqa: S704
    return _environment().get_template(template).render(policy=policy, **inline, **context) + "\n"


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("failover.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["island"] = island
    return environment


def _asset(name: str) -> str:
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), name)[0]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def island(value: object) -> Any:
    """Writes a value as JSON for a script element: whatever it holds, it cannot end the element or begin a comment."""
    import markupsafe

    document = inert_json(msgspec.json.encode(value).decode())
    for char, escape in _INERT.items():
        document = document.replace(char, escape)
    return markupsafe.Markup(document)  # noqa: S704 - every character with a meaning in HTML is escaped above


def glossary(used: set[str]) -> list[Any]:
    """Gives the explanations of the words a page uses, in their order of kind and word."""
    known = entries()
    return sorted((known[word] for word in used if word in known), key=lambda entry: (entry.kind, entry.word))
