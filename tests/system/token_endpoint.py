"""A token endpoint for client credentials: its users are the lab's, its tokens those the lab's brokers believe."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs

from failover.lab import Lab
from failover.lab.certs import sign_token


class TokenEndpoint:
    """Answers over TLS as the lab's server, in a thread, until the block ends.

    ``seconds``: how long tokens live. ``tokens``: those given out. ``down``: the answer is 503 while it is set.
    ``outage``: after so many tokens it is 503 for so many seconds, from the next request on. ``turned_away``: how
    often it was.
    """

    def __init__(self, lab: Lab, *, seconds: float) -> None:
        self.seconds = seconds
        self.tokens: list[str] = []
        self.down = False
        self.outage: tuple[int, float] | None = None
        self.turned_away = 0
        self._away_until = 0.0
        self._lab = lab
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(lab.certificates.server)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._server.server_port}/token"

    def settings(self, alias: str, bootstrap: str, *, secret: str | None = None) -> dict[str, str]:
        """Gives the settings of an mm2.properties by which a cluster is connected to with tokens."""
        options = (
            f'clientId="admin" clientSecret="{secret or self._lab.state.passwords["admin"]}" scope="kafka" '
            f'ssl.truststore.type="PEM" ssl.truststore.location="{self._lab.certificates.ca}"'
        )
        oauth = "org.apache.kafka.common.security.oauthbearer"
        own = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{oauth}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required {options};",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._lab.certificates.ca),
        }
        return {f"{alias}.{key}": value for key, value in own.items()}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, authorization: str, form: Mapping[str, list[str]]) -> tuple[int, dict[str, object]]:
        if self.outage is not None and len(self.tokens) >= self.outage[0]:
            self._away_until = time.monotonic() + self.outage[1]
            self.outage = None
        if self.down or time.monotonic() < self._away_until:
            self.turned_away += 1
            return 503, {"error": "temporarily_unavailable"}
        user, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if form.get("grant_type") != ["client_credentials"] or self._lab.state.passwords.get(user) != secret:
            return 401, {"error": "invalid_client", "error_description": f"no such client or secret: {user}"}
        self.tokens.append(sign_token(self._lab.certificates.token_key, user, seconds=self.seconds))
        return 200, {"access_token": self.tokens[-1], "token_type": "Bearer", "expires_in": int(self.seconds)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, said = endpoint._answer(self.headers["Authorization"], parse_qs(body))
                text = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                """Prints nothing."""

        return Handler
