"""`failover explain CODE`."""

from __future__ import annotations
