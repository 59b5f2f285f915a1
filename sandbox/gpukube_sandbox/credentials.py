"""The secret of a sandbox: new at each start, stored in files that only its user can read.

In scope: creating it, and comparing with it. Out of scope: how requests to a cloud contain it (`aks.identity`,
`eks.wire.identity`, `gke.wire.tokens`).

All users of a machine share loopback, so requests without the secret are refused.
"""

from __future__ import annotations

import hmac
import secrets

_BYTES = 30
"""Number of random bytes: forty characters, like AWS secret keys."""


def new_secret() -> str:
    """Return a new secret: bearer token of ARM and GKE, secret of all AWS keys, signing key of Entra tokens."""
    return secrets.token_urlsafe(_BYTES)


def is_same(given: str, secret: str) -> bool:
    """Compare secrets in constant time."""
    return hmac.compare_digest(given.encode(), secret.encode())
