"""Log lines on stderr: text for people, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: time (RFC 3339, UTC), level, logger, flow if there is one, message."""

    def __init__(self, flow: Callable[[], str]) -> None:
        super().__init__()
        self._flow = flow

    def format(self, record: logging.LogRecord) -> str:
        """Gives the line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        value = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            **({"flow": flow} if (flow := self._flow()) else {}),
            "message": record.getMessage(),
        }
        if record.exc_info:
            value["traceback"] = self.formatException(record.exc_info)
        return json.dumps(value)


class TextLines(logging.Formatter):
    """Formats a record as time, level, flow if there is one, and message, control characters made visible."""

    def __init__(self, flow: Callable[[], str]) -> None:
        super().__init__("%(asctime)sZ %(levelname)s %(message)s")
        self._flow = flow

    @staticmethod
    def converter(seconds: float | None) -> time.struct_time:
        """Gives the time in UTC."""
        return time.gmtime(seconds)

    def format(self, record: logging.LogRecord) -> str:
        """Gives the line."""
        from failover.report.inert import inert_line

        flow = self._flow()
        record.msg, record.args = inert_line(f"[{flow}] {record.getMessage()}" if flow else record.getMessage()), None
        return super().format(record)


def set_up(verbosity: int, quiet: bool, log_format: str, flow: Callable[[], str] = str) -> None:
    """Sends this package's log to stderr; the Kafka client's own lines only at -vv.

    ``flow`` names the flow that a line is about, "" where there is only one.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines(flow) if log_format == "json" else TextLines(flow))
    logger = logging.getLogger("failover")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(
        logging.DEBUG if verbosity >= 2 else logging.INFO if verbosity else logging.ERROR if quiet else logging.WARNING
    )
    logging.getLogger("failover.librdkafka").setLevel(logging.DEBUG if verbosity >= 2 else logging.CRITICAL + 1)
