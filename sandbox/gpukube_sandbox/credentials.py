"""The one secret of a sandbox: new at each start, told to its own user by files that nobody else can read.

In scope: making it, and comparing with it. Out of scope: how a cloud's requests carry it (`aks.identity`,
`eks.wire.identity`, `gke.wire.tokens`).

Loopback is shared by all users of a machine: what knows the secret is this user's, everything else is refused.
"""

from __future__ import annotations

import hmac
import secrets

_BYTES = 30
"""Forty characters, as many as AWS's secret keys have."""


def new_secret() -> str:
    """Make a secret: the bearer token of ARM and GKE, the secret of all AWS keys, and what signs Entra's tokens."""
    return secrets.token_urlsafe(_BYTES)


def is_same(given: str, secret: str) -> bool:
    """Compare without telling by the time it takes how much of it was right."""
    return hmac.compare_digest(given.encode(), secret.encode())
