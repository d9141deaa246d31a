"""One look at both clusters of a flow, and every group's offsets translated: ``take_snapshot``."""
