"""Asks a running ``--rest`` as a script would: no library of ours, nothing but HTTP."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64encode
from typing import Any

from prometheus_client.parser import text_string_to_metric_families


class Rest:
    """Is one address; ``token`` is sent along unless it is empty, or ``basic``: user and password.

    ``ca``: the authority to trust, for https.
    """

    def __init__(self, url: str, token: str = "", *, basic: tuple[str, str] | None = None, ca: str = "") -> None:
        self.url = url
        self._token = token
        self._basic = (
            {} if basic is None else {"Authorization": f"Basic {b64encode(':'.join(basic).encode()).decode()}"}
        )
        self._context = ssl.create_default_context(cafile=ca) if ca else None

    def ask(self, method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, str]:
        """Gives status and text."""
        token = self._token if token is None else token
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        headers = {"Content-Type": "application/json"} | self._basic | bearer
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + urllib.parse.quote(path, safe="/?=&"), data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def get(self, path: str) -> Any:
        """Gives the JSON of a path that must answer."""
        status, text = self.ask("GET", path)
        assert status == 200, (path, status, text)
        return json.loads(text)

    def state(self, connector: str) -> tuple[str, int]:
        """Gives a connector's state and how many tasks it has."""
        found = self.get(f"/connectors/{connector}/status")
        return found["connector"]["state"], len(found["tasks"])

    def metrics(self) -> Metrics:
        """Scrapes once."""
        status, text = self.ask("GET", "/metrics")
        assert status == 200, text
        return Metrics(text)


class Metrics:
    """Is one scrape, read by Prometheus' own parser."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._samples: dict[str, list[tuple[dict[str, str], float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    def all(self, name: str, **labels: str) -> list[float]:
        """Gives the values of a metric's samples with these labels."""
        return [value for found, value in self._samples.get(name, []) if labels.items() <= found.items()]

    def one(self, name: str, **labels: str) -> float:
        """Gives the only one."""
        (found,) = self.all(name, **labels)
        return found
