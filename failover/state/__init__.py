"""What is kept on disk: saved plans, journals of executions, and where they lie."""

from failover.state.folder import StateFolder, default_folder

__all__ = ["StateFolder", "default_folder"]
