"""Where playbooks are found: a path, or the name of one that comes along."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import failover
from failover.errors import PlaybookInvalid
from failover.runbook.parse import parse
from failover.runbook.playbook import Playbook


def shipped_folder() -> Path:
    """Is where the playbooks that come along lie: in the package, or beside it in a source tree."""
    package = Path(failover.__file__).parent
    inside = package / "playbooks"
    return inside if inside.is_dir() else package.parent / "playbooks"


def shipped() -> dict[str, Path]:
    """Gives the playbooks that come along by their names."""
    return {path.stem: path for path in sorted(shipped_folder().glob("*.yaml"))}


def playbook_text(reference: str) -> tuple[str, str]:
    """Reads a playbook's text by path or name; gives it and where it lies. Raises ``PlaybookInvalid``."""
    path = Path(reference).expanduser()
    if "/" not in reference and not reference.endswith((".yaml", ".yml")):
        known = shipped()
        if reference not in known:
            near = get_close_matches(reference, known, 1)
            raise PlaybookInvalid(
                f"no playbook is called {reference!r}",
                hint=f"did you mean {near[0]}?" if near else "failover playbook list; a path needs a / or .yaml",
            )
        path = known[reference]
    try:
        return path.read_text("utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "is no UTF-8 text"
        raise PlaybookInvalid(f"cannot read the playbook {path}: {said}", hint="failover playbook list") from error


def find_playbook(reference: str) -> Playbook:
    """Reads and checks a playbook by path or name. Raises ``PlaybookInvalid``."""
    return parse(*playbook_text(reference))
