"""The lab runs other Kafka versions, MirrorMaker 2 over SASL_SSL included."""

from __future__ import annotations

import pytest

from failover.lab import ADMIN, LabOptions, end_lab, up
from failover.lab.side import Side


@pytest.mark.parametrize("version", ["3.9.1", "4.3.1"])
def test_brokers_and_mirror_of_another_version(tmp_path, version):
    options = LabOptions(
        quick=True, kafka_version=version, mm2=True, sasl=True, authorizer=True, proxy=True, security="sasl_ssl"
    )
    try:
        lab = up(tmp_path / "lab", options)
        source = Side("primary", lab.client_settings("primary", user=ADMIN))
        target = Side("standby", lab.client_settings("standby", user=ADMIN, mechanism="PLAIN"))
        source.create_topic("orders", 2)
        source.produce("orders", 600)
        source.place("payments", {("orders", 0): 5})
        assert source.committed("payments") == {("orders", 0): 5}
        target.until(
            lambda: sum(end for _, end in target.ends("primary.orders").values()) == 600, what="copied", seconds=90
        )
    finally:
        end_lab(tmp_path / "lab")
