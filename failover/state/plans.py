"""Saved plans, as opaque bytes: their meaning is the planning layer's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from failover.errors import PlanInvalid, PlanNotFound
from failover.state.folder import StateFolder, newest_first, valid_id


def save_plan(state: StateFolder, plan_id: str, data: bytes) -> Path:
    """Keeps a plan under its id and says where."""
    path = state.plans / f"{plan_id}.json"
    state.write(path, data)
    return path


def find_plan(state: StateFolder, reference: str) -> Path:
    """Finds a plan by file name, id or an unambiguous beginning of an id.

    Raises ``PlanNotFound`` when nothing fits or several do.
    """
    if "/" in reference or reference.endswith(".json"):
        path = Path(reference)
        if not path.is_file():
            raise PlanNotFound(
                f"there is no plan file {reference}", hint="failover plan makes one; -o FILE writes a copy of it"
            )
        return path
    found = sorted(state.plans.glob(f"{reference}*.json")) if valid_id(reference) else []
    exact = [path for path in found if path.stem == reference]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise PlanNotFound(
            f"several plans begin with {reference}: {', '.join(path.stem for path in found[:5])}",
            hint="type more of the id",
        )
    raise PlanNotFound(f"there is no plan {reference} in {state.plans}", hint="failover plan makes one and names it")


def read_plan(path: Path) -> bytes:
    """Reads a plan file. Raises ``PlanInvalid`` when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise PlanInvalid(
            f"cannot read the plan {path}: {error.strerror}", hint="give a file this user may read"
        ) from error


def newest_plans(state: StateFolder) -> Iterator[Path]:
    """Yields saved plans, newest first."""
    yield from newest_first(state.plans.glob("*.json"))
