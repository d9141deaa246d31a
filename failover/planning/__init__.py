"""Pure: decides from one look at both clusters what would be committed, and why not where not."""

from failover.planning.build import exit_code, make_plan
from failover.planning.drift import FreshTarget, GroupDrift, drift, expired, wrong_cluster
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import decode_plan, encode_plan

__all__ = [
    "FreshTarget",
    "GroupDrift",
    "decode_plan",
    "drift",
    "encode_plan",
    "exit_code",
    "expired",
    "fingerprint",
    "make_plan",
    "wrong_cluster",
]
