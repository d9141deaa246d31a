"""Where and to whom this process answers over HTTP: ``--rest`` and the settings under ``failover.rest.``."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Mapping
from pathlib import Path

import msgspec

from failover.config.secret import Secret
from failover.config.settings import Setting
from failover.errors import ConfigError, UsageError

_PREFIX = "failover.rest"


class RestSettings(msgspec.Struct, frozen=True):
    """Says where to listen and what is asked of callers.

    ``host``: a name or an address, without brackets. ``certificate``, ``key``: paths of PEM files, "" for plain HTTP.
    ``token``: a bearer token; ``user`` with ``password``: basic authentication; either is enough for a caller.
    """

    host: str
    port: int
    certificate: str = ""
    key: str = ""
    key_password: Secret | None = None
    token: Secret | None = None
    user: str = ""
    password: Secret | None = None

    @property
    def guarded(self) -> bool:
        """Says whether callers must show credentials."""
        return self.token is not None or self.password is not None

    @property
    def url(self) -> str:
        """Gives the address as callers write it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def tls(self) -> ssl.SSLContext | None:
        """Gives the server's side of TLS, None for plain HTTP. Raises ``ConfigError``: the files cannot be used."""
        if not self.certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # A key without its password must be an error, not a question to a terminal that may not be there.
        password = self.key_password.reveal() if self.key_password is not None else ""
        try:
            context.load_cert_chain(self.certificate, self.key or None, lambda: password)
        except (OSError, ssl.SSLError, ValueError) as error:
            raise ConfigError(
                f"{_PREFIX}.ssl.certificate ({self.certificate}): the certificate and its key cannot be used: {error}",
                hint="name PEM files this user can read; the key's password goes into failover.rest.ssl.key.password",
            ) from error
        return context


def read_rest(settings: Mapping[str, Setting], address: str) -> RestSettings:
    """Reads the settings (``failover.`` removed) for ``--rest``'s HOST:PORT.

    Beyond loopback both TLS and credentials are required. Raises ``UsageError``, ``ConfigError``.
    """
    host, port = _parse(address)
    found = RestSettings(
        host,
        port,
        certificate=_path(settings, "rest.ssl.certificate"),
        key=_path(settings, "rest.ssl.key"),
        key_password=_secret(settings, "rest.ssl.key.password"),
        token=_secret(settings, "rest.token"),
        user=_text(settings, "rest.user"),
        password=_secret(settings, "rest.password"),
    )
    if (found.password is None) != (not found.user):
        raise ConfigError(f"{_PREFIX}.user and {_PREFIX}.password go together", hint="set both or neither")
    if not is_loopback(host):
        lacking = []
        if not found.certificate:
            lacking.append(f"TLS ({_PREFIX}.ssl.certificate, .ssl.key)")
        if not found.guarded:
            lacking.append(f"a token ({_PREFIX}.token) or {_PREFIX}.user and .password")
        if lacking:
            raise UsageError(
                f"--rest {address} is beyond this machine and needs {' and '.join(lacking)}",
                hint="set them, or listen on 127.0.0.1",
            )
    return found


def is_loopback(host: str) -> bool:
    """Says whether only this machine reaches an address; of names that is believed of ``localhost`` alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _parse(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 0xFFFF:
        raise UsageError(f"--rest {address!r} is no HOST:PORT", hint="as in --rest 127.0.0.1:8083")
    return host, int(port)


def _text(settings: Mapping[str, Setting], key: str) -> str:
    return settings[key].trimmed if key in settings else ""


def _path(settings: Mapping[str, Setting], key: str) -> str:
    text = _text(settings, key)
    return str(Path(text).expanduser()) if text else ""


def _secret(settings: Mapping[str, Setting], key: str) -> Secret | None:
    text = _text(settings, key)
    return Secret(text) if text else None
