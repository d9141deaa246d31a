from __future__ import annotations

import json

import msgspec
import pytest

from failover.errors import PlanInvalid
from failover.model.cluster import ClusterState
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import decode_plan, encode_plan
from tests.unit.planning.worlds import checkpoint, exact, plan, world


def made():
    return plan(
        world(
            partitions=2,
            source_commits={0: 500, 1: 7},
            translations={0: exact(500, 490)},
            checkpoints={0: checkpoint(400, 300, metadata=b"\xff")},
            target_commits={1: 3},
        )
    )


def test_round_trip():
    one = made()
    assert decode_plan(encode_plan(one)) == one
    document = json.loads(encode_plan(one))
    assert (document["kind"], document["version"]) == ("failover.plan", 1)
    assert document["created"] == "2026-11-05T03:14:07Z"
    assert document["fingerprint"].startswith("sha256:")


def test_same_look_same_fingerprint():
    assert made().fingerprint == made().fingerprint == fingerprint(made())


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d["groups"][0]["partitions"][0].update(offset=491),
        lambda d: d["groups"][0]["partitions"][0].update(metadata="x"),
        lambda d: d["groups"][0]["partitions"].pop(),
        lambda d: d["groups"][0].update(group="other"),
        lambda d: d["groups"][0].update(verdict="ready"),
        lambda d: d["options"].update(allow_rewind=True),
        lambda d: d.update(expires="2027-11-05T03:14:07Z"),
        lambda d: d["target"].update(cluster_id="another"),
        lambda d: d["topic_ids"].update({"primary.orders": "id-9"}),
        lambda d: d["groups"].append(d["groups"][0]),
        lambda d: d.pop("fingerprint"),
    ],
)
def test_an_edit_shows(edit):
    document = json.loads(encode_plan(made()))
    edit(document)
    with pytest.raises(PlanInvalid, match="edited"):
        decode_plan(json.dumps(document).encode())


def test_unknown_fields_and_layout_are_no_edit():
    document = json.loads(encode_plan(made()))
    document["later"] = {"x": 1}
    document["groups"][0]["partitions"][0]["colour"] = "blue"
    assert decode_plan(json.dumps(document).encode()) == made()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no plan file"),
        (b"\xff\xfe", "no plan file"),
        (b"[1]", "no plan file"),
        (b"{}", "no kind"),
        (b'{"kind": "failover.execution", "version": 1}', "'failover.execution'"),
        (b'{"kind": "failover.plan", "version": 2}', "version 2"),
        (b'{"kind": "failover.plan", "version": 1}', "missing required field `id`"),
    ],
)
def test_what_is_no_plan(data, said):
    with pytest.raises(PlanInvalid, match=said) as caught:
        decode_plan(data)
    assert caught.value.exit_code == 2
    assert "failover plan again" in caught.value.hint


def test_damage_names_its_place():
    document = json.loads(encode_plan(made()))
    del document["groups"][0]["partitions"][1]["topic"]
    with pytest.raises(PlanInvalid, match=r"\$\.groups\[0\]\.partitions\[1\]|\$\.groups\[\.\.\.\]"):
        decode_plan(json.dumps(document).encode())


def test_fingerprint_covers_decisions_kept_for_later():
    one = plan(world(source=ClusterState.DOWN, checkpoints={0: checkpoint(5, 5)}))
    (group,) = one.groups
    kept = msgspec.structs.replace(one, groups=(msgspec.structs.replace(group, when_free=group.partitions),))
    assert fingerprint(kept) != fingerprint(one)
