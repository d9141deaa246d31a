"""Kubernetes secrets on disk: what a Strimzi resource only names, read from a folder."""

from __future__ import annotations

import base64
import fnmatch
from pathlib import Path
from typing import Any


def secret_value(folder: Path, path: str, key: str) -> str:
    """Gives one value of the secret ``[NAMESPACE/]NAME``.

    It is a folder as Kubernetes mounts one (``NAME/KEY``) or a manifest as ``kubectl get secret NAME -o yaml`` writes
    it (``NAME.yaml``, ``.yml``, ``.json``), below the namespace's folder or directly. A key with ``*`` takes every key
    that fits, in their order (Strimzi: ``pattern`` of a trusted certificate). Raises LookupError and OSError.
    """
    namespace, _, name = path.rpartition("/")
    if not name or ".." in (namespace, name) or "/" in key:
        raise LookupError(f"{path} is no secret's name")
    for root in (folder / namespace, folder) if namespace else (folder,):
        values = _values(root, name)
        if values is not None:
            if key in values:
                return values[key].decode("utf-8")
            fitting = [values[found] for found in sorted(values) if fnmatch.fnmatchcase(found, key)]
            if not fitting:
                raise LookupError(f"the secret {name} in {root} has no key {key}")
            return "\n".join(value.decode("utf-8").rstrip("\n") for value in fitting)
    raise LookupError(f"the secret {name} is not in {folder}")


def _values(root: Path, name: str) -> dict[str, bytes] | None:
    mounted = root / name
    if mounted.is_dir():
        # Kubernetes mounts a secret's keys as links into a folder whose name begins with two dots.
        return {file.name: file.read_bytes() for file in mounted.iterdir() if file.is_file()}
    for suffix in (".yaml", ".yml", ".json"):
        manifest = root / f"{name}{suffix}"
        if manifest.is_file():
            return _of_manifest(manifest)
    return None


def _of_manifest(manifest: Path) -> dict[str, bytes]:
    from failover.config.yaml_core import load_yaml

    document: Any = next(iter(load_yaml(manifest.read_text("utf-8"), str(manifest))), None)
    if not isinstance(document, dict) or document.get("kind") != "Secret":
        raise LookupError(f"{manifest} is no manifest of a Secret")
    encoded, plain = document.get("data") or {}, document.get("stringData") or {}
    try:
        values = {key: base64.b64decode(str(value), validate=True) for key, value in encoded.items()}
    except ValueError:
        raise LookupError(f"{manifest}: its data is not base64") from None
    return values | {key: str(value).encode() for key, value in plain.items()}
