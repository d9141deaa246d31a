"""Where the state of connectors comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from failover.connect.values import Expanded


class Source(Protocol):
    """Tells the connectors of a Connect cluster: its REST interface, or the resource of the operator that runs it."""

    def connectors(self) -> Mapping[str, Expanded]:
        """Gives every connector, by name."""
        ...

    def operated(self) -> bool:
        """Says whether an operator may be at work: not where ``failover replicate`` answers as Connect does."""
        ...
