"""Pure: decides from one look at both clusters what would be committed, and why not where not."""

from failover.planning.build import exit_code, make_plan
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import decode_plan, encode_plan

__all__ = ["decode_plan", "encode_plan", "exit_code", "fingerprint", "make_plan"]
