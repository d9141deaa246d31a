"""Reads a report's page back: its elements, texts and data."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "br", "img", "input", "link", "hr", "col", "rect", "line", "polygon", "polyline"}


class Page(HTMLParser):
    """Collects every element with its attributes, the visible text, and the content of scripts and styles."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.raw: list[tuple[str, dict[str, str], str]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.elements.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("script", "style"):
            self.raw.append((tag, found, ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            tag, attributes, text = self.raw[-1]
            self.raw[-1] = (tag, attributes, text + data)
        elif data.strip():
            self.words.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        """Is what a reader sees."""
        return " ".join(self.words)

    def count(self, tag: str) -> int:
        """Counts elements of a kind."""
        return sum(found == tag for found, _ in self.elements)

    def islands(self) -> list[dict[str, Any]]:
        """Is the data of every table, in their order."""
        return [json.loads(text) for _, attributes, text in self.raw if attributes.get("type") == "application/json"]

    def tables(self) -> dict[str, list[list[str]]]:
        """Is every table by its id, as rows of texts, from its data."""
        names = [
            attributes["id"] for tag, attributes in self.elements if tag == "section" and "data-title" in attributes
        ]
        return {name: unpacked(data) for name, data in zip(names, self.islands(), strict=True)}


def unpacked(data: dict[str, Any]) -> list[list[str]]:
    """Turns a table's columns back into rows."""
    columns = [[column["d"][i] for i in column.get("i", range(data["rows"]))] for column in data["columns"]]
    return [list(row) for row in zip(*columns, strict=True)]


def policy(page: Page) -> dict[str, str]:
    """Is the content security policy by directive."""
    (content,) = (
        found["content"] for tag, found in page.elements if found.get("http-equiv") == "Content-Security-Policy"
    )
    return dict(part.strip().partition(" ")[::2] for part in content.split(";"))


def outside(page: Page) -> list[str]:
    """Lists every attribute through which something could be loaded, opened or run."""
    loads = {"src", "srcset", "action", "formaction", "style", "data", "background"}
    return [
        f"{tag} {name}={value}"
        for tag, attributes in page.elements
        for name, value in attributes.items()
        if name in loads
        or name.startswith("on")
        or (name in ("href", "xlink:href") and not re.fullmatch(r"#[\w-]+", value))
    ]
