"""Two real Kafka clusters on loopback, with traffic, faults and the real MirrorMaker 2."""

from __future__ import annotations

from failover.lab.down import end_lab
from failover.lab.lab import Lab, wait_until
from failover.lab.mirror import Endpoint, MirrorOptions, mm2_properties
from failover.lab.proxy_control import ProxyControl, Rule
from failover.lab.state import ADMIN, APP, Broker, Cluster, LabOptions, State
from failover.lab.up import up

__all__ = [
    "ADMIN",
    "APP",
    "Broker",
    "Cluster",
    "Endpoint",
    "Lab",
    "LabOptions",
    "MirrorOptions",
    "ProxyControl",
    "Rule",
    "State",
    "end_lab",
    "mm2_properties",
    "up",
    "wait_until",
]
