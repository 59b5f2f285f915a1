"""Authentication: the access token, and the credentials file that provides it.

In scope: both, the check of bearer tokens, and of assertions. Out of scope: anything that could accept a real
credential. Needs no Google library.

The file is a service account whose `token_uri` is the sandbox's, so that google-auth runs its real flow on loopback.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from gpukube_sandbox.credentials import is_same
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.tls import write_private

if TYPE_CHECKING:
    from pathlib import Path

_KEY_BITS = 2048
_EXPECTED = (
    "Expected OAuth 2 access token, login cookie or other valid authentication credential. "
    "See https://developers.google.com/identity/sign-in/web/devconsole-project."
)


def check_authorization(header: str | None, secret: str) -> None:
    """Reject a request without a bearer token or with one that is not the sandbox's.

    Raises:
        GoogleError: 401.
    """
    if not header:
        raise GoogleError("UNAUTHENTICATED", f"Request is missing required authentication credential. {_EXPECTED}")
    if not is_same(header, f"Bearer {secret}"):
        raise GoogleError("UNAUTHENTICATED", f"Request had invalid authentication credentials. {_EXPECTED}")


def write_credentials(directory: Path, token_url: str, secret: str) -> rsa.RSAPublicKey:
    """Write `google/credentials.json` and `google/token` below a directory, with a new key.

    Args:
        directory: Directory of the clients' files.
        token_url: URL where google-auth exchanges its assertion for the token.
        secret: The token.

    Returns:
        The public key that verifies assertions made with the file.
    """
    home = directory / "google"
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    account = {
        "type": "service_account",
        "project_id": "gpukube-sandbox",
        "private_key_id": "sandbox",
        "private_key": pem.decode(),
        "client_email": "sandbox@gpukube-sandbox.iam.gserviceaccount.invalid",
        "client_id": "1",
        "token_uri": token_url,
        "universe_domain": "googleapis.com",
    }
    write_private(home / "token", secret.encode())
    write_private(home / "credentials.json", json.dumps(account, indent=2).encode())
    return key.public_key()


def is_asserted(assertion: str, key: rsa.RSAPublicKey) -> bool:
    """Return whether an assertion (RFC 7523) was signed with the credentials file's key; its time is ignored."""
    signed, _, signature = assertion.rpartition(".")
    try:
        key.verify(urlsafe_b64decode(signature + "=="), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    except (InvalidSignature, ValueError):
        return False
    return True
