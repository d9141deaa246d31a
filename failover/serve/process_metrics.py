"""What the process as a whole costs: processor time, memory, open files, the interpreter."""

from __future__ import annotations


class ProcessMetrics:
    """Renders it in Prometheus' text format, under the names every Python process has."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    def render(self) -> str:
        """Gives the lines."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry).decode()
