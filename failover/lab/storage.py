"""A broker's storage, formatted as Kafka's own tool formats it, without a JVM start for each broker."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path

import platformdirs

from failover.errors import LabError
from failover.lab.files import write_private
from failover.lab.state import Broker, Cluster

_CHECKPOINT = "bootstrap.checkpoint"


def cluster_id() -> str:
    """Returns a new cluster id in Kafka's form: 16 bytes in URL-safe base64 without padding."""
    # an id that begins with a dash is taken for an option by Kafka's tools
    return base64.urlsafe_b64encode(b"\x00" + os.urandom(15)).decode().rstrip("=")


def bootstrap_checkpoint(java: Path, jars: Sequence[Path], version: str, *, cache: Path | None = None) -> Path:
    """Returns the first metadata snapshot of a new cluster, made once a Kafka version by ``StorageTool format``.

    It holds the feature levels (group, transaction and share versions) and nothing of one
    cluster. Without it a broker starts with the metadata version alone: no consumer protocol.
    Raises LabError when the tool fails.
    """
    folder = platformdirs.user_cache_path("failover") / "lab" if cache is None else cache
    kept = folder / f"bootstrap-{version}.checkpoint"
    if kept.exists():
        return kept
    # share groups are a preview in 4.1: switched on so that they can be told apart from others
    features = [] if version.startswith("3.") else ["--feature", "share.version=1"]
    with tempfile.TemporaryDirectory() as scratch:
        settings = Path(scratch) / "server.properties"
        settings.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
            "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
            f"controller.listener.names=CONTROLLER\nlog.dirs={scratch}/data\n"
        )
        command = [str(java), "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars)), "kafka.tools.StorageTool"]
        command += ["format", "-t", cluster_id(), "-c", str(settings), *features]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        made = Path(scratch) / "data" / _CHECKPOINT
        if done.returncode != 0 or not made.exists():
            raise LabError(f"Kafka {version} cannot format storage: {(done.stderr or done.stdout).strip()[-500:]}")
        folder.mkdir(parents=True, exist_ok=True)
        write_private(kept, made.read_bytes())
    return kept


def prepare(broker: Broker, cluster: Cluster, properties: str, checkpoint: Path) -> None:
    """Writes a broker's settings and an empty log folder that belongs to its cluster and node.

    Kafka (MetaPropertiesEnsemble, version 1): meta.properties names cluster, node and folder.
    """
    data = broker.folder / "data"
    data.mkdir(parents=True)
    write_private(broker.properties, properties.encode())
    directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    meta = f"version=1\ncluster.id={cluster.id}\nnode.id={broker.node}\ndirectory.id={directory}\n"
    (data / "meta.properties").write_text(meta)
    shutil.copyfile(checkpoint, data / _CHECKPOINT)
