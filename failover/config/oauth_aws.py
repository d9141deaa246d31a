"""Signs tokens for Amazon MSK's IAM access control with Amazon's own signer, which asks nobody but its STS."""

from __future__ import annotations

import re
import time

from failover.config.oauth import AwsIam, Token
from failover.config.secret import Secret
from failover.errors import TokenUnavailable

_REGION_IN_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")


def region_of(host: str) -> str:
    """Gives the AWS region that stands in the name of an MSK broker, "" if none does."""
    match = _REGION_IN_HOST.search(host)
    return match.group(1) if match else ""


def sign_token(source: AwsIam) -> Token:
    """Signs a token; it lives 15 minutes. Raises ``TokenUnavailable``."""
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
    except ImportError:
        raise TokenUnavailable(
            "AWS_MSK_IAM needs Amazon's signer, which is not installed", hint='pip install "failover[aws]"'
        ) from None
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        if source.role_arn:
            session = source.role_session or "failover"
            text, ends = Signer.generate_auth_token_from_role_arn(source.region, source.role_arn, session)
        elif source.profile:
            text, ends = Signer.generate_auth_token_from_profile(source.region, source.profile)
        else:
            text, ends = Signer.generate_auth_token(source.region)
    except (BotoCoreError, ClientError, ValueError) as error:
        raise TokenUnavailable(
            f"AWS credentials for region {source.region} cannot be had: {error}",
            hint="the AWS SDK looks in the environment, the profile (AWS_PROFILE) and the instance's role",
            passing=isinstance(error, ClientError),
        ) from None
    return Token(Secret(text), time.time(), ends / 1000, source.role_arn or source.profile or "aws")
