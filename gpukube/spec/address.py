"""A cluster's address, for commands that need no spec: `eks:ACCOUNT/REGION/NAME`.

In scope: parsing and formatting it. Out of scope: the fields it contains (the providers' `spec`).
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
"""Address format of each cloud's clusters."""


def is_address(text: str) -> bool:
    """Return whether a text is an address, not a glob over keys of a spec: keys contain no colon."""
    return ":" in text


def address_of(cluster: Cluster) -> str:
    """Return the address of a cluster, see `address_with`."""
    return address_with(cluster.provider, cluster.model_dump(by_alias=True))


def address_with(provider: str, fields: Mapping[str, object]) -> str:
    """Return the address of a cluster; the same address means the same cluster.

    If a cloud ignores the case of names, the address is in lower case.

    Args:
        provider: The cluster's cloud.
        fields: The cluster's fields, with the spec's names; those that are not in the address are ignored.
    """
    cloud = CLOUDS[provider]
    text = f"{provider}:{'/'.join(str(fields[name]) for name in cloud.address)}"
    return text.lower() if cloud.ignores_case else text


def parse_addresses(texts: Sequence[str]) -> dict[str, Cluster]:
    """Parse addresses; each cluster's key is its name, with the provider or the full address if names are ambiguous.

    Raises:
        SpecError: Contains one diagnostic per invalid address.
    """
    problems: list[Finding] = []
    clusters: dict[str, tuple[str, Cluster]] = {}  # by address: the same cluster once, however it is written
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
        message = f'"{text}": {values.get(field, "")!r} is not a valid {field}'
        fix = f"write {_FORMS[provider]}, with the values of a spec"
        problems.append(Finding("address", Where("--cluster"), message, fix=fix))
        return None
