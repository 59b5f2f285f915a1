"""Quantities and names of resources, as the API server parses them.

In scope: the number behind "500m" or "4Gi", its canonical format, which names are extended resources.
Out of scope: the total requests of a pod (`matching`), refusals (`validation`).

Source: k8s.io/apimachinery pkg/api/resource; kubernetes pkg/apis/core/helper (IsExtendedResourceName).
"""

from __future__ import annotations

import re
from decimal import Decimal

from gpukube_sandbox.kube.store.problems import bad_request

_SUFFIXES: dict[str, Decimal] = {
    "Ki": Decimal(1024),
    "Mi": Decimal(1024**2),
    "Gi": Decimal(1024**3),
    "Ti": Decimal(1024**4),
    "Pi": Decimal(1024**5),
    "Ei": Decimal(1024**6),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    "M": Decimal(1000**2),
    "G": Decimal(1000**3),
    "T": Decimal(1000**4),
    "P": Decimal(1000**5),
    "E": Decimal(1000**6),
}
_QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[mkMGTPE]|[eE][+-]?\d+)?")
_PUBLISHED = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_QUALIFIED = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_LONGEST_PREFIX = 253
_LONGEST_NAME = 63
_QUOTA = "requests."


def parse_quantity(value: str | float) -> Decimal:
    """Parse a Kubernetes quantity ("500m", "4Gi", 8).

    Raises:
        ApiProblem: 400, because the API server cannot decode an object with an invalid quantity.
    """
    text = str(value)
    if not _QUANTITY.fullmatch(text):
        raise bad_request(f"quantities must match the regular expression '{_PUBLISHED}'")
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return Decimal(text.removesuffix(suffix)) * factor
    return Decimal(text)


def canonical(value: str | float) -> str:
    """Format a quantity like the API server: fractions in thousandths, binary suffixes unchanged."""
    amount = parse_quantity(value)
    if amount == amount.to_integral_value():
        return str(value) if str(value).endswith("i") else f"{amount:f}".partition(".")[0]
    return f"{(amount * 1000).to_integral_value()}m"


def is_native(name: str) -> bool:
    """Return whether Kubernetes itself defines the resource; only native resources can be overcommitted."""
    return "/" not in name or "kubernetes.io/" in name


def is_qualified(name: str) -> bool:
    """Return whether a resource name has the format domain/name."""
    prefix, _, rest = name.partition("/")
    return len(prefix) <= _LONGEST_PREFIX and len(rest) <= _LONGEST_NAME and bool(_QUALIFIED.fullmatch(name))


def is_extended(name: str) -> bool:
    """Return whether a name is an extended resource: one of a device plugin, counted in integers."""
    return not is_native(name) and not name.startswith(_QUOTA) and is_qualified(_QUOTA + name)
