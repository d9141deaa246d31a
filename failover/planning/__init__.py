"""Pure: decides from one look at both clusters what would be committed, and why not where not."""

from failover.planning.build import exit_code, make_plan
from failover.planning.drift import Difference, EarlierWrite, TargetNow, check_usable, differences, refusal
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import decode_plan, encode_plan

__all__ = [
    "Difference",
    "EarlierWrite",
    "TargetNow",
    "check_usable",
    "decode_plan",
    "differences",
    "encode_plan",
    "exit_code",
    "fingerprint",
    "make_plan",
    "refusal",
]
