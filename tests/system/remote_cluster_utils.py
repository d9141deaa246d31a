"""Calls Java's RemoteClusterUtils, the reference for translated offsets, in a JVM of its own process.

As a program: ``remote_cluster_utils.py LIBJVM CLASSPATH BOOTSTRAP ALIAS GROUP...`` prints JSON, group → [topic,
partition, offset, metadata].
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

Answer = dict[tuple[str, int], tuple[int, str]]


def java_translates(bootstrap: str, alias: str, groups: Sequence[str]) -> dict[str, Answer]:
    """Gives what ``RemoteClusterUtils.translateOffsets`` answers for groups of the cluster ``alias``."""
    from failover.lab.jars import class_path
    from failover.lab.java import find_java

    home = find_java().executable.resolve().parent.parent
    jars = os.pathsep.join(map(str, class_path()))
    command = [sys.executable, __file__, str(home / "lib/server/libjvm.so"), jars, bootstrap, alias, *groups]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answers = json.loads(done.stdout.splitlines()[-1])
    return {group: {(t, p): (at, metadata) for t, p, at, metadata in rows} for group, rows in answers.items()}


def main(libjvm: str, jars: str, bootstrap: str, alias: str, *groups: str) -> None:
    import jpype

    jpype.startJVM(libjvm, "-Xmx256m", "-XX:+UseSerialGC", classpath=jars.split(os.pathsep), convertStrings=True)
    utils = jpype.JClass("org.apache.kafka.connect.mirror.RemoteClusterUtils")
    properties = jpype.JClass("java.util.HashMap")()
    properties.put("bootstrap.servers", bootstrap)
    wait = jpype.JClass("java.time.Duration").ofSeconds(30)
    found = {}
    for group in groups:
        answer = utils.translateOffsets(properties, alias, group, wait)
        found[group] = [
            (
                entry.getKey().topic(),
                int(entry.getKey().partition()),
                int(entry.getValue().offset()),
                entry.getValue().metadata(),
            )
            for entry in answer.entrySet()
        ]
    sys.stdout.write("\n" + json.dumps(found) + "\n")
    sys.stdout.flush()
    jpype.shutdownJVM()


if __name__ == "__main__":
    main(*sys.argv[1:])
