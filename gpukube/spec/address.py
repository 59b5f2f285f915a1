"""A cluster in one word, for commands that need no spec: `eks:ACCOUNT/REGION/NAME`.

Lives here: the three forms. Must not live here: what a cluster is (model).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from gpukube.errors import Diagnostic, SpecError, Where
from gpukube.spec.model import CLUSTER_MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.spec.model import Cluster

__all__ = ["ADDRESS_FORMS", "address_of", "is_address", "parse_addresses"]

_FIELDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "eks": ("account", "region", "name"),
    "aks": ("subscription", "resourceGroup", "name"),
    "gke": ("project", "location", "name"),
}
ADDRESS_FORMS: Final = tuple(
    f"{provider}:{'/'.join(f.upper() for f in fields)}" for provider, fields in _FIELDS.items()
)
"""How each cloud's clusters are written."""


def is_address(text: str) -> bool:
    """Say whether this is meant as an address, not as a glob over keys of a spec: keys have no colon."""
    return ":" in text


def address_of(cluster: Cluster) -> str:
    """Write the address of a cluster; two that are written alike are one cluster.

    Names of Azure keep the case that they were written in, but mean the same in any (docs:
    azure/azure-resource-manager/management/resource-name-rules): they come out in lower case.
    """
    written = cluster.model_dump(by_alias=True)
    text = f"{cluster.provider}:{'/'.join(str(written[name]) for name in _FIELDS[cluster.provider])}"
    return text.lower() if cluster.provider == "aks" else text


def parse_addresses(texts: Sequence[str]) -> dict[str, Cluster]:
    """Read addresses; the key of each cluster is its name, with its provider or whole where two have the same.

    Raises:
        SpecError: Holds one diagnostic per address that is not one.
    """
    problems: list[Diagnostic] = []
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


def _parse(text: str, problems: list[Diagnostic]) -> Cluster | None:
    provider, _, rest = text.partition(":")
    fields = _FIELDS.get(provider)
    parts = rest.split("/")
    if fields is None or len(parts) != len(fields):
        fix = f"write {', or '.join(ADDRESS_FORMS)}"
        problems.append(Diagnostic("address", Where("--cluster"), f'"{text}" is not the address of a cluster', fix=fix))
        return None
    values = {"provider": provider, **dict(zip(fields, parts, strict=True))}
    try:
        return CLUSTER_MODELS[provider].model_validate(values)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][-1])
        message = f'"{text}": {values.get(field, "")!r} is no {field}'
        form = ADDRESS_FORMS[list(_FIELDS).index(provider)]
        problems.append(
            Diagnostic("address", Where("--cluster"), message, fix=f"write {form}, as a spec would have it")
        )
        return None
