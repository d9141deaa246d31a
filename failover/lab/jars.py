"""Kafka's jars: resolved once a version, the class path kept in the cache folder."""

from __future__ import annotations

import contextlib
import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from failover.errors import LabError
from failover.lab.files import write_private

DEFAULT_VERSION = "4.1.1"
KNOWN_VERSIONS = ("3.9.1", "4.1.1", "4.3.1")


class _Kept(msgspec.Struct, frozen=True):
    endpoints: list[str]
    jars: list[str]


def class_path(version: str = DEFAULT_VERSION, *, cache: Path | None = None) -> tuple[Path, ...]:
    """Returns the jars of a broker, the command-line tools, Connect and MirrorMaker 2 of one Kafka version.

    The first call downloads them (about half a minute); later ones read the list kept in
    ``cache`` (default: the platform's cache folder). Raises LabError when the version cannot be
    resolved.
    """
    folder = platformdirs.user_cache_path("failover") / "lab" if cache is None else cache
    kept = folder / f"classpath-{version}.json"
    wanted = [_kafka(version), _logging(version)]
    if (jars := _known(kept, wanted)) is not None:
        return jars
    folder.mkdir(parents=True, exist_ok=True)
    # One download at a time: two would write the same files, and one might read what the other has half written.
    with (folder / "download.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (jars := _known(kept, wanted)) is None:
            jars = _resolve(version, wanted)
            write_private(kept, msgspec.json.encode(_Kept(wanted, [str(jar) for jar in jars])))
    return jars


def _known(kept: Path, wanted: list[str]) -> tuple[Path, ...] | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        found = msgspec.json.decode(kept.read_bytes(), type=_Kept)
        if found.endpoints == wanted and all(Path(jar).exists() for jar in found.jars):
            return tuple(map(Path, found.jars))
    return None


def _resolve(version: str, endpoints: list[str]) -> tuple[Path, ...]:
    try:
        import jgo
    except ImportError:
        raise LabError("the lab's dependencies are not installed", hint='pip install "failover[lab]"') from None
    chosen: dict[tuple[str, str], Any] = {}
    try:
        # resolve, not build: build looks for a JDK to sort jars into modules, which nobody here
        # needs. One endpoint after the other: resolved together, the versions that the logging
        # backend's parent manages replace Kafka's own (kafka-clients 3.8.0 under Kafka 4.1.1).
        for endpoint in endpoints:
            for artifact in jgo.resolve(endpoint):
                chosen.setdefault((artifact.groupId, artifact.artifactId), artifact)
        with ThreadPoolExecutor(8) as pool:
            paths = list(pool.map(lambda artifact: Path(artifact.resolve()), chosen.values()))
    except Exception as failure:  # jgo documents no exceptions of its own; whatever it was, the lab cannot start
        raise LabError(
            f"Kafka {version} cannot be resolved: {failure}",
            hint=f"is the Maven repository reachable? versions known to work: {', '.join(KNOWN_VERSIONS)}",
        ) from failure
    return tuple(sorted(path for path in paths if path.suffix == ".jar"))


def _kafka(version: str) -> str:
    return "+".join(
        f"org.apache.kafka:{name}:{version}"
        for name in ("kafka_2.13", "kafka-tools", "connect-mirror", "connect-runtime", "connect-basic-auth-extension")
    )


def _logging(version: str) -> str:
    # Kafka's jars name no logging backend; without one a broker that fails to start does not say why
    return (
        "org.slf4j:slf4j-reload4j:1.7.36"
        if version.startswith("3.")
        else "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"
    )
