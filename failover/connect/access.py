"""How a Connect cluster's REST interface is reached, and which places are no such thing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec

from failover.config.secret import Secret
from failover.config.settings import Settings
from failover.errors import ConfigError, UsageError

Vendor = Literal["msk", "google"]
PASSWORD_VARIABLE = "FAILOVER_CONNECT_PASSWORD"  # noqa: S105 - the variable's name
_GOOGLE = re.compile(r"projects/[^/]+/locations/[^/]+/connectClusters/[^/]+(/connectors/[^/]+)?")


class ConnectAccess(msgspec.Struct, frozen=True):
    """Is how a Connect cluster is reached.

    ``urls``: its workers, tried in their order; no user or password stands in them. ``ca``: a PEM file with the
    authorities to trust, "" for the system's. ``timeout``: the longest accepted silence, in seconds.
    """

    urls: tuple[str, ...]
    user: str = ""
    password: Secret | None = None
    ca: str = ""
    timeout: float = 30.0

    @property
    def shown(self) -> str:
        """Gives the workers' addresses for texts."""
        return ",".join(self.urls)


class Elsewhere(msgspec.Struct, frozen=True):
    """Is a vendor's service that runs connectors and has no Connect REST interface; ``name`` its own name there."""

    vendor: Vendor
    name: str


def find_access(
    settings: Settings,
    *,
    url: str | None = None,
    user: str | None = None,
    password_file: str | None = None,
    ca: str | None = None,
    timeout: float = 30.0,
    environ: Mapping[str, str] | None = None,
) -> ConnectAccess | Elsewhere | None:
    """Puts an access together from what was typed, else the ``failover.connect.`` settings; None without an address.

    ``settings``: those under ``failover.``. The password: ``password_file``, else ``$FAILOVER_CONNECT_PASSWORD``,
    else the URL, else ``failover.connect.password``. Raises ConfigError, UsageError.
    """
    environ = os.environ if environ is None else environ
    address = url or _setting(settings, "url")
    if not address:
        return None
    if vendor := elsewhere(address):
        return vendor
    urls, in_url, password_in_url = _split(address)
    # the password in the file belongs to the address in the file, and goes to no other
    same = address == _setting(settings, "url")
    name = user or in_url or (_setting(settings, "user") if same else "")
    password: Secret | None = None
    if password_file is not None:
        password = Secret(_read(password_file))
    elif environ.get(PASSWORD_VARIABLE):
        password = Secret(environ[PASSWORD_VARIABLE])
    elif password_in_url:
        password = Secret(password_in_url)
    elif "connect.password" in settings and same:
        password = Secret(settings["connect.password"].trimmed)
    if name and password is None:
        raise UsageError(
            f"user {name} of {','.join(urls)} has no password",
            hint=f"--password-file FILE, ${PASSWORD_VARIABLE}, or failover.connect.password in the configuration",
        )
    trusted = ca or _setting(settings, "ca")
    if trusted and not Path(trusted).is_file():
        raise ConfigError(f"{trusted}: no such file", hint="--ca-file names a PEM file with the authorities to trust")
    return ConnectAccess(urls, name, password if name else None, trusted, timeout)


def elsewhere(address: str) -> Elsewhere | None:
    """Recognises the names of Amazon's and Google's services (an ARN, ``projects/…/connectClusters/…``)."""
    if address.startswith("arn:") and ":kafkaconnect:" in address:
        return Elsewhere("msk", address)
    name = address.removeprefix("//managedkafka.googleapis.com/")
    return Elsewhere("google", name) if _GOOGLE.fullmatch(name) else None


def _split(address: str) -> tuple[tuple[str, ...], str, str]:
    urls, user, password = [], "", ""
    for part in address.split(","):
        text = part.strip().removeprefix("connect+")
        # a bare host means Connect's usual port; a URL means what URLs mean
        parsed = urlsplit(text if "://" in text else f"http://{text if ':' in text else text + ':8083'}")
        try:
            port, host = parsed.port, parsed.hostname
        except ValueError:
            port, host = None, None
        if parsed.scheme not in ("http", "https") or not host or parsed.query or parsed.fragment:
            # the text may hold a password, so it is not shown
            raise UsageError(
                "--url is no address of a Connect worker",
                hint="write http://host:8083, https://host:8083, or several with commas between them",
            )
        shown = f"[{host}]" if ":" in host else host
        urls.append(f"{parsed.scheme}://{shown}{f':{port}' if port else ''}{parsed.path.rstrip('/')}")
        user, password = unquote(parsed.username or "") or user, unquote(parsed.password or "") or password
    return tuple(urls), user, password


def _setting(settings: Settings, name: str) -> str:
    key = f"connect.{name}"
    return settings[key].trimmed if key in settings else ""


def _read(path: str) -> str:
    try:
        return Path(path).expanduser().read_text().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--password-file {path} cannot be read: {error}", hint="it holds the password and nothing else"
        ) from None
