"""What a librdkafka client is made with, its token in hand: without one its constructor waits and cannot say why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from failover.errors import CredentialsRefused, TokenUnavailable

if TYPE_CHECKING:
    from failover.config.clients import ClientSettings


def client_properties(settings: ClientSettings, *, alias: str) -> dict[str, Any]:
    """Gives a client's connection properties; raises ``CredentialsRefused`` if a token is needed and cannot be had."""
    if (failure := token_failure(settings)) is not None:
        raise without_token(alias, failure) from failure
    return settings.librdkafka()


def token_failure(settings: ClientSettings) -> TokenUnavailable | None:
    """Sees to it that a token is at hand where one is needed; gives the reason if it cannot be had.

    confluent-kafka 2.13 and later wait up to ten seconds in a constructor for the first token.
    """
    token = settings.sasl.token if settings.sasl is not None else None
    try:
        if token is not None:
            token.provider().token()
    except TokenUnavailable as failure:
        return failure
    return None


def without_token(alias: str, failure: TokenUnavailable) -> CredentialsRefused:
    """Builds the error of a cluster that cannot be logged in to for want of a token."""
    return CredentialsRefused(
        f"cluster {alias} cannot be logged in to: {failure.message}", alias=alias, hint=failure.hint
    )
