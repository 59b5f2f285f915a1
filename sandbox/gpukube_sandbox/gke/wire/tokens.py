"""Who is asking: the one dummy access token, and the credentials file that leads to it.

Lives here: both, and the check of bearer tokens. Must not live here: anything that could take a real credential for
good. No google library is needed here.

The file is a service account whose `token_uri` is the sandbox's, so that google-auth runs its real flow on loopback.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gpukube_sandbox.gke.wire.answers import Refusal
from gpukube_sandbox.guard import ACCESS_TOKEN
from gpukube_sandbox.tls import write_private

if TYPE_CHECKING:
    from pathlib import Path

_KEY_BITS = 2048
_EXPECTED = (
    "Expected OAuth 2 access token, login cookie or other valid authentication credential. "
    "See https://developers.google.com/identity/sign-in/web/devconsole-project."
)


def check_authorization(header: str | None) -> None:
    """Refuse a bearer token that is not the dummy, and a request without any.

    Raises:
        Refusal: 401.
    """
    if not header:
        raise Refusal("UNAUTHENTICATED", f"Request is missing required authentication credential. {_EXPECTED}")
    if header != f"Bearer {ACCESS_TOKEN}":
        raise Refusal("UNAUTHENTICATED", f"Request had invalid authentication credentials. {_EXPECTED}")


def write_credentials(directory: Path, token_url: str) -> None:
    """Write `google/credentials.json` and `google/token` below a directory, with a key of their own.

    Args:
        directory: For the clients' files.
        token_url: Where google-auth changes its assertion for the token.
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
    write_private(home / "token", ACCESS_TOKEN.encode())
    write_private(home / "credentials.json", json.dumps(account, indent=2).encode())
