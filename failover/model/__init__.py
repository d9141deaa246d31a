"""Frozen values that travel between the layers: no I/O, no clock, no client."""

from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, Window, WindowRequest
from failover.model.translation import Precision, Proof, Translation

__all__ = [
    "Fault",
    "Precision",
    "Proof",
    "Record",
    "TopicPartition",
    "Translation",
    "Window",
    "WindowRequest",
]
