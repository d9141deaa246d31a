"""The command line: one file a command, thin; everything that decides stands in lower layers.

Importing this package loads click and nothing else of weight: the table below lists every
command with its help line, and a command's module is imported when it is called.
"""

from failover.cli.entry import main

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("failover.cli.demo", "The whole story on this machine in under two minutes."),
    "lab": ("failover.cli.lab", "Two real Kafka clusters on loopback to try things on."),
    "config": ("failover.cli.config", "What the configuration says and where each value comes from."),
    "status": ("failover.cli.status", "Ready or not, and what a failover would cost this second."),
    "plan": ("failover.cli.plan", "Dry run: what execute would commit, and what it costs."),
    "execute": ("failover.cli.execute", "Commit a plan's offsets to the target."),
    "verify": ("failover.cli.verify", "Does the target hold what was written, and who came back."),
    "rollback": ("failover.cli.rollback", "Put back the offsets from before an execution."),
    "evict": ("failover.cli.evict", "Remove lingering members of a group on the target."),
    "history": ("failover.cli.history", "Past executions on record."),
    "show": ("failover.cli.show", "One execution or plan in full."),
    "report": ("failover.cli.report", "An execution, a playbook's run or a plan as one HTML file."),
    "diff": ("failover.cli.diff", "What changed between two plans."),
    "run": ("failover.cli.run", "Run a playbook: steps with a journal, resumable, undone on failure."),
    "playbook": ("failover.cli.playbook", "Playbooks: list, show, validate, render for people."),
    "replicate": ("failover.cli.replicate", "Copy topics in MirrorMaker 2's place, exactly once."),
    "seed": ("failover.cli.seed", "Write where the reverse flow begins, behind what came from there."),
    "connect": ("failover.cli.connect", "MirrorMaker 2's connectors on a Kafka Connect cluster."),
    "checkpoint": ("failover.cli.checkpoint", "Keep exact checkpoints on the target, beside MirrorMaker 2."),
    "translate": ("failover.cli.translate", "A group's translated offsets, and how each is known."),
    "inspect": ("failover.cli.inspect", "What MirrorMaker 2's internal topics hold, readable."),
    "health": ("failover.cli.health", "The daily and weekly checklists, with what to do."),
    "explain": ("failover.cli.explain", "What a code, verdict or column means and what to do."),
}
