"""Log lines on stderr: text for people, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
import time


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object: time (RFC 3339, UTC), level, logger, message."""

    def format(self, record: logging.LogRecord) -> str:
        """Gives the line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        value = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            value["traceback"] = self.formatException(record.exc_info)
        return json.dumps(value)


class TextLines(logging.Formatter):
    """Formats a record as time, level and message, control characters made visible."""

    @staticmethod
    def converter(seconds: float | None) -> time.struct_time:
        """Gives the time in UTC."""
        return time.gmtime(seconds)

    def format(self, record: logging.LogRecord) -> str:
        """Gives the line."""
        from failover.report.inert import inert_line

        record.msg, record.args = inert_line(record.getMessage()), None
        return super().format(record)


def set_up(verbosity: int, quiet: bool, log_format: str) -> None:
    """Sends this package's log to stderr; the Kafka client's own lines only at -vv."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines("%(asctime)sZ %(levelname)s %(message)s"))
    logger = logging.getLogger("failover")
    logger.handlers[:] = [handler]
    logger.propagate = False
    logger.setLevel(
        logging.DEBUG if verbosity >= 2 else logging.INFO if verbosity else logging.ERROR if quiet else logging.WARNING
    )
    logging.getLogger("failover.librdkafka").setLevel(logging.DEBUG if verbosity >= 2 else logging.CRITICAL + 1)
