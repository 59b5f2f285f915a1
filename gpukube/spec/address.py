"""A cluster in one word, for commands that need no spec: `eks:ACCOUNT/REGION/NAME`.

In scope: reading and writing it. Out of scope: of which fields it is made (the providers' `spec`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from gpukube.errors import Finding, SpecError, Where
from gpukube.spec.clusters import CLOUDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.spec.clusters import Cluster

_FORMS: Final[Mapping[str, str]] = {
    provider: f"{provider}:{'/'.join(field.upper() for field in cloud.address)}" for provider, cloud in CLOUDS.items()
}
ADDRESS_FORMS: Final = tuple(_FORMS.values())
"""How each cloud's clusters are written."""


def is_address(text: str) -> bool:
    """Return whether this is meant as an address, not as a glob over keys of a spec: keys have no colon."""
    return ":" in text


def address_of(cluster: Cluster) -> str:
    """Write the address of a cluster, as `address_with` does."""
    return address_with(cluster.provider, cluster.model_dump(by_alias=True))


def address_with(provider: str, fields: Mapping[str, object]) -> str:
    """Write the address of a cluster; two that are written alike are one cluster.

    Where a cloud compares names without case, the address is in lower case.

    Args:
        provider: Its cloud.
        fields: Of the cluster, by the names of the spec; those that are not of the address do not count.
    """
    cloud = CLOUDS[provider]
    text = f"{provider}:{'/'.join(str(fields[name]) for name in cloud.address)}"
    return text.lower() if cloud.ignores_case else text


def parse_addresses(texts: Sequence[str]) -> dict[str, Cluster]:
    """Read addresses; the key of each cluster is its name, with its provider or whole where two have the same.

    Raises:
        SpecError: Holds one diagnostic per address that is not one.
    """
    problems: list[Finding] = []
    clusters: dict[str, tuple[str, Cluster]] = {}  # by address: one cluster is one, however it is written
    for text in dict.fromkeys(texts):
        if cluster := _parse(text, problems):
            clusters.setdefault(address_of(cluster), (text, cluster))
    if problems:
        raise SpecError.of(problems)
    names = Counter(cluster.name for _, cluster in clusters.values())
    longer = Counter(f"{cluster.provider}:{cluster.name}" for _, cluster in clusters.values())
    keys = {}
    for text, cluster in clusters.values():
        both = f"{cluster.provider}:{cluster.name}"
        keys[cluster.name if names[cluster.name] == 1 else both if longer[both] == 1 else text] = cluster
    return keys


def _parse(text: str, problems: list[Finding]) -> Cluster | None:
    provider, _, rest = text.partition(":")
    cloud = CLOUDS.get(provider)
    parts = rest.split("/")
    if cloud is None or len(parts) != len(cloud.address):
        fix = f"write {', or '.join(ADDRESS_FORMS)}"
        problems.append(Finding("address", Where("--cluster"), f'"{text}" is not a cluster address', fix=fix))
        return None
    values = {"provider": provider, **dict(zip(cloud.address, parts, strict=True))}
    try:
        return cloud.cluster.model_validate(values)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][-1])
        message = f'"{text}": {values.get(field, "")!r} is no {field}'
        fix = f"write {_FORMS[provider]}, with the values of a spec"
        problems.append(Finding("address", Where("--cluster"), message, fix=fix))
        return None
