"""Pure: what an operator should know about the flow, as findings with remedies."""

from failover.checks.find import CHECKS, by_severity, find, worst

__all__ = ["CHECKS", "by_severity", "find", "worst"]
