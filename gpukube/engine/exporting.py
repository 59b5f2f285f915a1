"""Writes pools of a spec, or live pools, for another tool, with what is lost at the top.

In scope: choosing the cluster, what every target loses, and the head of the document. Out of scope: what each tool
supports (the providers' `exporters`).
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Final, cast

from gpukube import __version__
from gpukube.cluster.names import ALL_KINDS
from gpukube.core.exporting import ExportedPool, Losses
from gpukube.core.families import family_key
from gpukube.core.owners.labels import ADVERTISER_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL
from gpukube.errors import SpecError, Where
from gpukube.provider import load_provider, provider_names
from gpukube.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.core.exporting import Exporter
    from gpukube.core.families import FamilyKey
    from gpukube.core.values import Advertiser, ClusterRef, Desired, Observed
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.session import Session
    from gpukube.provider import Provider

_WIDTH: Final = 110
_MARKS: Final = (
    f"{OWNER_LABEL} and {POOL_LABEL} make a pool gpukube's: gpukube pool apply of its spec changes it, and deletes it "
    "with --prune when it leaves the spec. Remove these labels if this tool should be the sole owner"
)
_PROOF: Final = "verification: gpukube pool verify -f SPEC compares the GPUs on the live nodes with the spec"


def targets() -> tuple[str, ...]:
    """List the targets to which pools of the installed clouds can be exported."""
    return tuple(sorted({target for name in provider_names() for target in load_provider(name).extras.exporters}))


def exporter_of(provider: Provider, target: str) -> Exporter:
    """Return the exporter of a cloud for a target.

    Raises:
        SpecError: The cloud has no such target.
    """
    if found := provider.extras.exporters.get(target):
        return found
    known = tuple(provider.extras.exporters)
    message = f"pools of {provider.name} cannot be exported to {target}"
    fix = f"use one of {', '.join(known)}" if known else "pools of this cloud cannot be exported"
    raise SpecError(message, where=Where("--to"), fix=fix, code="export-target")


def require_live(exporter: Exporter, target: str, addresses: Sequence[str]) -> None:
    """Reject live pools for a target that needs a spec: what a spec cannot express would be lost silently.

    Raises:
        SpecError: The target does not support live pools.
    """
    if exporter.resource is not None:
        return
    cluster = shlex.join(word for address in addresses for word in ("--cluster", address))
    raise SpecError(
        f"live pools are not exported to {target}",
        where=Where("--to"),
        fix=f"gpukube pool import {cluster} > pools.yaml; compare it with the pools; then "
        f"gpukube pool export -f pools.yaml --to {target}. Or --to terraform, which imports the live pools",
        why=f"{target} creates new pools, and would lose what a spec cannot express",
        code="export-target",
    )


def exported_cluster(prepared: Prepared) -> ClusterRef:
    """Return the cluster whose pools are exported.

    Raises:
        SpecError: The spec has pools on several clusters.
    """
    found = [key for key, pools in prepared.desired.items() if pools or prepared.addressed]
    if len(found) == 1:
        return prepared.clusters[found[0]]
    message = f"the spec has pools on {len(found)} clusters; an export covers one"
    fix = f"add --cluster {found[0]}" if found else "add a pool"
    where = f": {', '.join(found)}" if found else ""
    raise SpecError(message + where, where=Where("--cluster"), fix=fix, code="export-clusters")


def live_pools(session: Session, pools: Sequence[tuple[Observed, Desired]]) -> tuple[ExportedPool, ...]:
    """Return live pools for export, with the ownership labels that they have, if any."""
    return tuple(ExportedPool(_with_live_labels(session.provider, desired, live), live) for live, desired in pools)


def _with_live_labels(provider: Provider, desired: Desired, live: Observed) -> Desired:
    """Translate again with the live labels, also those by which gpukube's release serves the nodes.

    The nodes determine which release serves them, not what a spec would choose.
    """
    protect = live.labels.get(PROTECT_LABEL) == "true"
    target = replace(desired.target, owner=live.owner, pool=live.pool, protect=protect)
    there = {key: value for key, value in desired.ownership.labels.items() if live.labels.get(key) == value}
    advertiser = cast("Advertiser", live.labels.get(ADVERTISER_LABEL) or "none")
    ownership = replace(desired.ownership, labels=there, advertiser=advertiser)
    return provider.desired(target, ownership, desired.promise)


def export_text(cluster: ClusterRef, target: str, pools: Sequence[ExportedPool]) -> str:
    """Write pools of one cluster for a target.

    Args:
        cluster: Their cluster.
        target: A key of the provider's exporters.
        pools: The pools to write.

    Raises:
        SpecError: The target is unknown, or does not support some of the pools.
    """
    exporter, losses = exporter_of(load_provider(cluster.provider), target), Losses()
    _require_no_alternatives(pools, target)
    text = exporter.write(cluster, pools, losses)
    if losses.refusals:
        raise SpecError.of(losses.refusals)
    _require_visible(text, cluster, pools)
    notes = (*losses.notes, *_notes(pools, is_pool=exporter.is_pool))
    head = [exporter.head] if exporter.head else []
    count = f"{len(pools)} GPU pool{'' if len(pools) == 1 else 's'}"
    title = f"{count} of {cluster.name}, for {target}, by gpukube {__version__}"
    comments = [title, "", "Not included, or different:"]
    for note in notes:
        comments += wrap(visible(note), _WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join([*head, *(f"# {line}".rstrip() for line in comments), "", text])


def _require_no_alternatives(pools: Sequence[ExportedPool], target: str) -> None:
    """Reject alternatives of a pool: of a family with a fixed size only one pool is to have nodes.

    Raises:
        SpecError: There are several declared pools of such a family.
    """
    families: dict[FamilyKey, list[str]] = {}
    for pool in pools:
        if pool.live is None and (key := family_key(pool.desired)):
            families.setdefault(key, []).append(pool.desired.target.pool)
    for (_, family, _), names in families.items():
        if len(names) > 1:
            raise SpecError(
                f"{family} has alternatives ({', '.join(names[1:])}), and {target} cannot try them in turn",
                where=Where("--to"),
                fix=f"export one of them: add --pool {' or --pool '.join(names)}",
                why="it would create each of them with all nodes",
                code="export-refused",
            )


def _require_visible(text: str, cluster: ClusterRef, pools: Sequence[ExportedPool]) -> None:
    """Reject invisible and control characters: anybody can set labels and tags of live pools.

    Raises:
        SpecError: There is one, and the target has no way to escape it.
    """
    found = next((char for char in text if not char.isprintable() and char != "\n"), None)
    if found is not None:
        names = ", ".join(pool.name for pool in pools)
        raise SpecError(
            f"a label, tag or other value of {names} has the invisible character U+{ord(found):04X}",
            where=Where(cluster.key),
            fix="remove it, choose pools without it with --pool, or export to terraform",
            code="export-refused",
        )


def _notes(pools: Sequence[ExportedPool], *, is_pool: bool) -> Iterator[str]:
    """Yield notes on what gpukube does in addition to the pool, whatever the target."""
    for pool in pools:
        for kind in (one for one in ALL_KINDS if one.serves(pool.desired.ownership)):
            how = "gpukube pool create -f SPEC installs it once the pool exists"
            chart = f"chart {kind.chart} {kind.version} of {kind.repository}"
            yield (
                f"{pool.name}: the Helm release {kind.address} ({kind.title}), which makes its GPUs available to pods: "
                f"{how if is_pool else chart}"
            )
        if pool.desired.target.protect:
            yield f"{pool.name}: deletionProtection is the label {PROTECT_LABEL}, which only gpukube respects"
    if is_pool:
        if any(pool.desired.target.owner for pool in pools):
            yield _MARKS
        yield _PROOF
