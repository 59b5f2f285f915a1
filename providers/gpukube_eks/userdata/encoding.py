"""User data as bytes: base64 in a launch template, possibly compressed."""

from __future__ import annotations

import base64
import zlib
from typing import Final

MOST_BYTES: Final = 16384
"""Limit before base64 (botocore ec2 RequestLaunchTemplateData); EKS's own part counts too."""
_GZIP: Final = b"\x1f\x8b"
_MOST_EXPANDED: Final = 1 << 20
_WITH_HEADER: Final = 31
"""zlib's window bits for gzip."""


def decode(encoded: str) -> tuple[bytes, bool]:
    """Return user data as its readers see it, and whether it is compressed.

    Cloud-init and nodeadm decompress it (awslabs/amazon-eks-ami nodeadm/internal/configprovider/encoding.go).

    Raises:
        ValueError: It is not base64, or not complete gzip of at most 1 MiB.
    """
    raw = base64.b64decode(encoded, validate=True)
    if not raw.startswith(_GZIP):
        return raw, False
    reader = zlib.decompressobj(_WITH_HEADER)
    try:
        expanded = reader.decompress(raw, _MOST_EXPANDED)
    except zlib.error as error:
        raise ValueError("invalid gzip") from error
    if not reader.eof:
        raise ValueError("incomplete gzip, or more than 1 MiB")
    return expanded, True


def encode(raw: bytes, *, compressed: bool = False) -> str:
    """Return user data as in a launch template; the inverse of `decode` up to the compression level."""
    if compressed:
        writer = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=_WITH_HEADER)
        raw = writer.compress(raw) + writer.flush()
    return base64.b64encode(raw).decode()


def size(encoded: str) -> int:
    """Return the number of bytes that count against the limit."""
    return len(base64.b64decode(encoded))
