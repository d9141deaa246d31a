"""How a Connect cluster is named, and where its password may come from and go to."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.config.settings import Origin, Settings, make_setting
from failover.connect.access import ConnectAccess, Elsewhere, elsewhere, find_access
from failover.errors import ConfigError, UsageError


def written(**values: str) -> Settings:
    return Settings({
        f"connect.{key}": make_setting(f"connect.{key}", value, Origin("file", f"failover.connect.{key}", "mm2"))
        for key, value in values.items()
    })  # fmt: skip


def access(settings: Settings | None = None, **typed: str) -> ConnectAccess:
    found = find_access(settings or Settings({}), environ={}, **typed)  # type: ignore[arg-type]
    assert isinstance(found, ConnectAccess)
    return found


@pytest.mark.parametrize(
    ("typed", "urls"),
    [
        ("localhost", ("http://localhost:8083",)),
        ("connect+https://c.example/api/", ("https://c.example/api",)),
        ("http://a:1, http://b:2", ("http://a:1", "http://b:2")),
        ("http://[::1]:8083", ("http://[::1]:8083",)),
    ],
)
def test_addresses(typed, urls):
    assert access(url=typed).urls == urls


@pytest.mark.parametrize("typed", ["ftp://a", "http://", "http://a:port", "http://a?x=1", "http://u:secret@"])
def test_what_is_no_address_is_refused_without_being_shown(typed):
    with pytest.raises(UsageError) as raised:
        access(url=typed)
    assert "secret" not in str(raised.value)


def test_a_password_in_the_url_is_taken_out_of_it():
    found = access(url="https://ops:p%40ss@c:8083")
    assert found.user == "ops"
    assert found.password is not None
    assert found.password.reveal() == "p@ss"
    assert "p@ss" not in repr(found) + found.shown
    assert "p%40ss" not in repr(found)


def test_the_password_of_the_file_goes_to_its_own_address_only():
    own = written(url="https://c:8083", user="ops", password="hidden")
    assert access(own).password is not None
    assert access(own, url="https://c:8083").user == "ops"
    assert access(own, url="https://elsewhere:8083").user == ""
    with pytest.raises(UsageError, match="has no password"):
        access(own, url="https://elsewhere:8083", user="ops")


def test_sources_of_a_password_in_their_order(tmp_path: Path):
    file = tmp_path / "password"
    file.write_text("from file\n")
    found = find_access(written(url="c", user="u", password="x"), password_file=str(file), environ={})
    assert isinstance(found, ConnectAccess)
    assert found.password is not None
    assert found.password.reveal() == "from file"
    found = find_access(written(url="c", user="u", password="x"), environ={"FAILOVER_CONNECT_PASSWORD": "env"})
    assert isinstance(found, ConnectAccess)
    assert found.password is not None
    assert found.password.reveal() == "env"


def test_a_missing_authority_is_said_before_anything_is_contacted():
    with pytest.raises(ConfigError, match="no such file"):
        access(url="https://c:8083", ca="nowhere.pem")


def test_no_address_is_no_access():
    assert find_access(Settings({}), environ={}) is None


def test_vendors_are_known_by_their_names():
    arn = "arn:aws:kafkaconnect:eu-west-1:123:connector/mm2/ab-1"
    assert elsewhere(arn) == Elsewhere("msk", arn)
    google = "projects/p/locations/l/connectClusters/c"
    assert elsewhere(f"//managedkafka.googleapis.com/{google}") == Elsewhere("google", google)
    assert elsewhere("http://projects/p") is None
