"""What becomes of the source's record batches on their way to the target. Pure: bytes in, bytes out."""

from failover.replication.batches.assembly import Limits
from failover.replication.batches.cut import cut
from failover.replication.batches.outgoing import Kind, Outgoing, next_sequence, stamp
from failover.replication.batches.prepare import Prepared, prepare

__all__ = ["Kind", "Limits", "Outgoing", "Prepared", "cut", "next_sequence", "prepare", "stamp"]
