"""Reads and changes Strimzi's resources through kubectl, whose own configuration says which Kubernetes it is."""

from __future__ import annotations

import subprocess
from typing import Any

import msgspec

from failover.config.strimzi import KIND
from failover.connect.strimzi import RESOURCE, Patch, Place, find_place, reported
from failover.connect.values import Expanded
from failover.errors import ConnectAnswer, ConnectorNotFound, ConnectRefused, UsageError

_FORBIDDEN = ("forbidden", "unauthorized", "must be logged in")


class Kubectl:
    """Is kubectl (or oc) with a namespace and, where it is known, the name of one KafkaMirrorMaker2 resource.

    Arguments reach it as a list, so that no name is ever read by a shell. Raises UsageError where there is no such
    program, ConnectRefused where Kubernetes refuses, ConnectAnswer for what else it says.
    """

    def __init__(
        self, *, program: str = "kubectl", namespace: str = "", resource: str = "", timeout: float = 30.0
    ) -> None:
        self.program = program
        self._namespace, self._resource, self._timeout = namespace, resource, timeout

    @property
    def shown(self) -> str:
        """Names it for texts."""
        return f"{self.program} {self._resource or KIND}{' in ' + self._namespace if self._namespace else ''}"

    def resources(self) -> list[dict[str, Any]]:
        """Gives the resources."""
        names = [self._resource] if self._resource else []
        answer = msgspec.json.decode(self._run("get", RESOURCE, *names, *self._where(), "--output", "json"))
        found: list[dict[str, Any]] = answer.get("items", []) if not self._resource else [answer]
        if not found:
            raise ConnectorNotFound(
                f"{self.shown}: there is no {KIND} resource", hint="--namespace NAME, or kubectl's own configuration"
            )
        return found

    def connectors(self) -> dict[str, Expanded]:
        """Gives the connectors of all its resources, as the operator last saw them."""
        return {name: entry for resource in self.resources() for name, entry in reported(resource).items()}

    def operated(self) -> bool:
        """Says that an operator is at work: the resources are its own."""
        return True

    def place(self, source: str, target: str) -> Place:
        """Finds a flow in the resources."""
        return find_place(self.resources(), source, target)

    def apply(self, patch: Patch) -> str:
        """Applies a patch; gives what kubectl says."""
        return self._run(*patch.command[1:]).decode(errors="replace").strip()

    def _where(self) -> list[str]:
        return ["--namespace", self._namespace] if self._namespace else []

    def _run(self, *arguments: str) -> bytes:
        wait = f"--request-timeout={max(1, round(self._timeout))}s"
        try:
            done = subprocess.run(
                [self.program, *arguments, wait], capture_output=True, timeout=self._timeout + 10, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except FileNotFoundError:
            raise UsageError(
                f"there is no {self.program} in PATH", hint="install it, or apply the patch by hand"
            ) from None
        except subprocess.TimeoutExpired:
            raise ConnectAnswer(
                f"{self.program} {arguments[0]} did not end", status=0, hint="does it reach its Kubernetes?"
            ) from None
        if done.returncode == 0:
            return done.stdout
        said = " ".join(done.stderr.decode(errors="replace").split())[:500]
        text = f"{self.program} {arguments[0]}: {said or f'exit {done.returncode}'}"
        if any(word in said.lower() for word in _FORBIDDEN):
            raise ConnectRefused(text, hint=f"it needs the rights get and patch on {RESOURCE}")
        raise ConnectAnswer(text, status=0, hint="run it by hand to see more")
