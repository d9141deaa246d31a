from __future__ import annotations

import pytest

from failover.errors import ClusterUnreachable, CredentialsRefused
from failover.kafka.faults import NO_ANSWER, fault, fault_of_loss, maybe_fault, name_of


@pytest.mark.parametrize(
    ("number", "name", "retriable"),
    [
        (-1, "UNKNOWN_SERVER_ERROR", False),
        (1, "OFFSET_OUT_OF_RANGE", False),
        (3, "UNKNOWN_TOPIC_OR_PARTITION", True),
        (6, "NOT_LEADER_OR_FOLLOWER", True),
        (14, "COORDINATOR_LOAD_IN_PROGRESS", True),
        (16, "NOT_COORDINATOR", True),
        (25, "UNKNOWN_MEMBER_ID", False),
        (29, "TOPIC_AUTHORIZATION_FAILED", False),
        (58, "SASL_AUTHENTICATION_FAILED", False),
        (69, "GROUP_ID_NOT_FOUND", False),
        (86, "GROUP_SUBSCRIBED_TO_TOPIC", False),
        (88, "UNSTABLE_OFFSET_COMMIT", True),
        (100, "UNKNOWN_TOPIC_ID", True),
        (111, "UNRELEASED_INSTANCE_ID", False),
        (133, "SHARE_SESSION_LIMIT_REACHED", True),
        (NO_ANSWER, "NO_ANSWER", False),
        (999, "ERROR_999", False),
    ],
)
def test_codes_have_kafkas_names(number, name, retriable):
    made = fault(number, "text")
    assert (made.number, made.name, made.message, made.retriable) == (number, name, "text", retriable)


def test_zero_is_no_fault_and_unknown_codes_keep_the_name_they_came_with():
    assert maybe_fault(0) is None
    assert name_of(0) == "NONE"
    assert fault(-150, name="_STATE").name == "_STATE"
    assert fault(25, name="other").name == "UNKNOWN_MEMBER_ID"


def test_a_lost_broker_is_a_fault_below_minus_one():
    assert fault_of_loss(ClusterUnreachable("gone", alias="a")).number == NO_ANSWER
    assert fault_of_loss(CredentialsRefused("no", alias="a")).name == "CREDENTIALS_REFUSED"
