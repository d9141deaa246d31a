"""A record written to the target and read back, before anybody relies on it."""

from __future__ import annotations

import msgspec

from failover.errors import ClusterError, StepFailed
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import TopicPartition
from failover.runbook.kinds import Context, Kind, Result, Settled

TOPIC = "failover-canary"


class Canary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``topic``: a topic of this tool's own; a business topic would be changed by it."""

    topic: str = TOPIC


class CanaryKind(Kind[Canary]):
    """Writes one record to a topic of its own on the target and reads it back: the target takes writes and gives reads.

    Makes the topic where it is missing (one partition, records kept a day); it and its records stay.
    """

    parameters = Canary
    results = {"offset": "where the record lies"}  # noqa: RUF012 - a class's constant

    def preview(self, given: Canary, context: Context) -> str:
        there = isinstance(context.reach.target.describe_topics([given.topic])[given.topic], TopicInfo)
        made = "" if there else "make it and "
        return f"would {made}write one record to {given.topic} on the target and read it back"

    def run(self, given: Canary, context: Context) -> Result:
        if not given.topic.startswith(TOPIC):
            raise StepFailed(f"{given.topic} is not a topic for this", hint=f"its name begins with {TOPIC}")
        target, tp = context.reach.target, TopicPartition(given.topic, 0)
        if not isinstance(target.describe_topics([given.topic])[given.topic], TopicInfo):
            fault = target.create_topic(given.topic, 1, {"retention.ms": "86400000"})
            if fault is not None:
                raise StepFailed(f"{given.topic} cannot be made on the target: {fault}")
        before = target.log_ranges([tp])[tp]
        value = f"{context.playbook} {context.run_id} {context.step_id}".encode()
        try:
            offset = target.append_records(tp, [(context.run_id.encode(), value)])
        except ClusterError as error:
            raise StepFailed(f"the target takes no record: {error.message}", hint=error.hint) from error
        if isinstance(before, LogRange) and offset < before.end:
            raise StepFailed(
                f"the target says it wrote offset {offset} of {given.topic}, which ended at {before.end} before",
                hint="a cluster that loses what it acknowledged is not to be moved to",
            )
        found = [record for records in target.read(tp) for record in records if record.offset == offset]
        if not found or found[0].value != value:
            raise StepFailed(f"the record written at offset {offset} of {given.topic} does not come back")
        return {"offset": offset}

    def settle(self, given: Canary, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # a second record does no harm


KIND = CanaryKind()
