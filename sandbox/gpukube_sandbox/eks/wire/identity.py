"""Authentication: the sandbox's dummy access keys, and signatures of version 4.

In scope: keys, the account of a key, the check of signed requests, of presigned URLs, and of a cluster's bearer token.
Out of scope: anything that could accept a real credential.

Every account has its own keys: `AKIAGPUK` (or `ASIAGPUK`, from AssumeRole) and the twelve digits of the account, twenty
characters like real ones; the secret is the same for all accounts, and different in each sandbox.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote, urlsplit

from gpukube_sandbox.eks.wire.answers import AwsError
from gpukube_sandbox.guard import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping

SESSION = "gpukube-sandbox-session"

_KEY = re.compile(r"(AKIA|ASIA)GPUK(\d{12})")
_SCOPE = re.compile(r"Credential=([^/,\s]+)/(\d{8})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request")
_TOKEN_PREFIX = "k8s-aws-v1."  # noqa: S105 - the public prefix of every token
_TOKEN_LIMIT = 4096
_TOKEN_AGE_S = 15 * 60
_CLOCK_SKEW_S = 5 * 60
_TOKEN_KEYS = frozenset(
    {
        "action", "version", "x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signature",
        "x-amz-signedheaders", "x-amz-security-token", "x-amz-user-agent",
    }
)  # fmt: skip
"""Query keys that the verifier allows (kubernetes-sigs/aws-iam-authenticator pkg/token/token.go)."""
_CLUSTER_HEADER = "x-k8s-aws-id"


@dataclass(frozen=True, slots=True)
class Caller:
    """The signer of a request.

    Attributes:
        account: Twelve digits.
        region: Region in the signature's scope.
        service: Signing name: eks, ec2, sts, iam, autoscaling.
        role: Name of the assumed role; "" for the user.
    """

    account: str
    region: str
    service: str
    key: str
    role: str = ""

    @property
    def arn(self) -> str:
        """Return the ARN as GetCallerIdentity returns it."""
        if self.role:
            return f"arn:aws:sts::{self.account}:assumed-role/{self.role}/gpukube"
        return f"arn:aws:iam::{self.account}:user/sandbox"

    @property
    def user_id(self) -> str:
        """Return the unique id of the principal."""
        return f"AROAGPUK{self.account}:gpukube" if self.role else f"AIDAGPUK{self.account}"


def access_key(account: str, *, session: bool = False) -> str:
    """Return the access key id of an account."""
    return f"{'ASIA' if session else 'AKIA'}GPUK{account}"


def read_caller(headers: Mapping[str, str], query: Mapping[str, str]) -> Caller:
    """Return the signer of a request, from its Authorization header or presigned URL.

    Keys that are not the sandbox's are rejected, so that a real one never seems to work; the signature itself is
    checked by `check_signed` and `check_presigned`.

    Raises:
        AwsError: 403 MissingAuthenticationToken or UnrecognizedClientException.
    """
    header = headers.get("authorization", "")
    found = _SCOPE.search(header) or _SCOPE.search(f"Credential={query.get('X-Amz-Credential', '')}")
    if found is None:
        raise AwsError("MissingAuthenticationToken", "Missing Authentication Token", status=403)
    token = headers.get("x-amz-security-token", "") or query.get("X-Amz-Security-Token", "")
    return _caller(found[1], token, found[3], found[4])


def _caller(key: str, token: str, region: str, service: str) -> Caller:
    known = _KEY.fullmatch(key)
    session, _, role = token.partition("/")
    if known is None or (known[1] == "ASIA") != (session == SESSION):
        raise AwsError(
            "UnrecognizedClientException", "The security token included in the request is invalid.", status=403
        )
    return Caller(known[2], region, service, key, role)


@dataclass(frozen=True, slots=True)
class Signed:
    """The signed parts of a request.

    Attributes:
        path: As sent, with its escapes.
        query: As sent.
        headers: Lowercase name -> value.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


def check_signed(request: Signed, secret: str) -> None:
    """Check the signature in the Authorization header of a request.

    Raises:
        AwsError: 403 InvalidSignatureException; the secret or the request differs from what was signed.

    Source:
        docs: IAM/latest/UserGuide/reference_sigv-create-signed-request; botocore auth.py SigV4Auth.
    """
    parts = dict(
        re.findall(r"(Credential|SignedHeaders|Signature)=([^,\s]+)", request.headers.get("authorization", ""))
    )
    names = parts.get("SignedHeaders", "").split(";")
    if "host" not in names or any(name not in request.headers for name in names):
        raise _mismatch()
    canonical = "\n".join(
        (
            request.method,
            quote(request.path or "/", safe="/~"),  # its escapes are escaped once more, except for S3
            _canonical_query(parse_qsl(request.query, keep_blank_values=True)),
            *(f"{name}:{' '.join(request.headers[name].split())}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(request.body).hexdigest(),
        )
    )
    scope = parts.get("Credential", "").partition("/")[2]
    text = _string_to_sign(request.headers.get("x-amz-date", ""), scope, canonical)
    if not hmac.compare_digest(_sign(secret, scope, text), parts.get("Signature", "")):
        raise _mismatch()


def _canonical_query(pairs: list[tuple[str, str]]) -> str:
    encoded = sorted((quote(key, safe="-_.~"), quote(value, safe="-_.~")) for key, value in pairs)
    return "&".join(f"{key}={value}" for key, value in encoded)


def _string_to_sign(moment: str, scope: str, canonical: str) -> str:
    return "\n".join(("AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))


def check_presigned(address: str, headers: Mapping[str, str], secret: str) -> Caller:
    """Check a presigned GET as STS does.

    Args:
        address: URL with scheme, host, and query.
        headers: Lowercase name -> value of the signed headers other than the host.
        secret: The sandbox's secret.

    Raises:
        AwsError: 403 InvalidSignatureException, or see `read_caller`.
    """
    parts = urlsplit(address)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    caller = read_caller({}, query)
    signed = query.get("X-Amz-SignedHeaders", "")
    values = {"host": parts.netloc, **headers}
    if any(name not in values for name in signed.split(";")):
        raise _mismatch()
    canonical = "\n".join(
        (
            "GET",
            parts.path or "/",
            _canonical_query([(key, value) for key, value in query.items() if key != "X-Amz-Signature"]),
            *(f"{name}:{values[name]}" for name in signed.split(";")),
            "",
            signed,
            hashlib.sha256(b"").hexdigest(),
        )
    )
    moment = query.get("X-Amz-Date", "")
    scope = query["X-Amz-Credential"].partition("/")[2]
    text = _string_to_sign(moment, scope, canonical)
    if not hmac.compare_digest(_sign(secret, scope, text), query.get("X-Amz-Signature", "")):
        raise _mismatch()
    return caller


def _mismatch() -> AwsError:
    message = (
        "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access "
        "Key and signing method. Consult the service documentation for details."
    )
    return AwsError("InvalidSignatureException", message, status=403)


def _sign(secret: str, scope: str, text: str) -> str:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()


def is_bearer_for(token: str, cluster: str, account: str, secret: str) -> bool:
    """Return whether a bearer token is a presigned GetCallerIdentity of an account for a cluster.

    Args:
        token: `k8s-aws-v1.` and the URL in URL-safe base64 without padding.
        cluster: Name that must be signed in `x-k8s-aws-id`.
        account: Account whose principals have access.
        secret: The sandbox's secret.

    Source:
        kubernetes-sigs/aws-iam-authenticator pkg/token/token.go. A loopback URL over http is also valid: clients that
        are configured with the sandbox's endpoint presign that.
    """
    signed = _signed_for(token, cluster, secret)
    if signed is None:
        return False
    caller, moment = signed
    return caller.account == account and caller.service == "sts" and _is_fresh(moment)


@lru_cache(200)
def _signed_for(token: str, cluster: str, secret: str) -> tuple[Caller, str] | None:
    """Return the signer of a token for a cluster, and the time; None if invalid. Called for every request."""
    if not token.startswith(_TOKEN_PREFIX) or len(token) > _TOKEN_LIMIT or "=" in token:
        return None
    encoded = token.removeprefix(_TOKEN_PREFIX)
    try:
        address = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    pairs = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    query = dict(pairs)
    if len(query) != len(pairs) or not _is_whitelisted(address, query):
        return None
    try:
        return check_presigned(address, {_CLUSTER_HEADER: cluster}, secret), query.get("X-Amz-Date", "")
    except AwsError:
        return None


def _is_whitelisted(address: str, query: Mapping[str, str]) -> bool:
    parts = urlsplit(address)
    names = {key.lower() for key in query}
    is_sts = parts.scheme == "https" and bool(re.fullmatch(r"sts(\.[a-z0-9-]+)?\.amazonaws\.com", parts.hostname or ""))
    if not (is_sts or (parts.hostname and is_loopback(parts.hostname))) or parts.path not in {"", "/"}:
        return False
    if names - _TOKEN_KEYS or query.get("Action") != "GetCallerIdentity":
        return False
    if _CLUSTER_HEADER not in query.get("X-Amz-SignedHeaders", "").split(";"):
        return False
    return 0 <= _number(query.get("X-Amz-Expires", "")) <= _TOKEN_AGE_S


def _number(text: str) -> int:
    return int(text) if text.isdigit() else -1


def _is_fresh(moment: str) -> bool:
    """Return whether X-Amz-Date is at most fifteen minutes ago by the wall clock, which clients sign with."""
    try:
        signed = datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return False
    return -_CLOCK_SKEW_S < time.time() - signed < _TOKEN_AGE_S
