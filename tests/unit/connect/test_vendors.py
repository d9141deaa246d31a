"""What to type where there is no Connect REST interface."""

from __future__ import annotations

import pytest

from failover.connect.access import elsewhere
from failover.connect.vendors import vendor_commands
from failover.report.connect_text import vendor_text

ARN = "arn:aws:kafkaconnect:eu-west-1:123:connector/mm2/ab-1"
GOOGLE = "projects/p/locations/europe-west1/connectClusters/c"
VERBS = ("list", "status", "offsets", "deploy", "pause", "resume", "stop", "restart", "watch")


@pytest.mark.parametrize("name", [ARN, GOOGLE, f"{GOOGLE}/connectors/mm2"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_command_or_says_that_there_is_none(name, verb):
    where = elsewhere(name)
    assert where is not None
    found = vendor_commands(where, verb)
    assert found.commands or found.notes
    assert all(command[0] in ("aws", "gcloud") for command in found.commands)
    assert max(map(len, found.notes), default=0) < 200


def test_commands_name_place_and_connector():
    where = elsewhere(GOOGLE)
    assert where is not None
    text = vendor_text(vendor_commands(where, "stop", ("my source",)))
    assert "gcloud managed-kafka connectors stop 'my source' --connect-cluster c --location europe-west1" in text
    where = elsewhere(ARN)
    assert where is not None
    assert f"--region eu-west-1 --connector-arn {ARN}" in vendor_text(vendor_commands(where, "pause"))
