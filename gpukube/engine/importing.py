"""Converts live pools to a commented spec whose plan with --adopt adds gpukube's labels and changes nothing else.

In scope: the text, and checking it with the loader, the rules, and the diff; what they reject or find different becomes
a comment. Out of scope: which fields a person chose (core.importing and the providers).
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Final, cast

from gpukube.cluster.state.advertisers import find_advertisers
from gpukube.cluster.state.node_drift import nodes_of_pool
from gpukube.core.fields import DRIVER, PLUGIN, FieldPath, label
from gpukube.core.importing import import_pool
from gpukube.core.jsontree import at, tree
from gpukube.core.live import live_machine
from gpukube.core.owners.labels import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL
from gpukube.core.plan import adopting_changes, carry_over, plan_pool
from gpukube.core.yamltext import parse_yaml
from gpukube.engine.plan.prepare import prepare
from gpukube.errors import SpecError, Where
from gpukube.gpu.mig_parted import read_cut
from gpukube.spec.dump import dump_data
from gpukube.spec.loading.load import load_specs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.importing import ImportedPool
    from gpukube.core.values import Change, ClusterFacts, ClusterRef, Desired, Observed
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.session import Session
    from gpukube.spec.dump import SpecData

_WIDTH: Final = 110
_ROUNDS: Final = 4
"""Maximum number of comparisons: fields written after one may change the next."""
_MIXED: Final = "nvidia.com/mig-"
_OWNER: Final = FieldPath("devicePlugin", "owner")
_MIG: Final = FieldPath("sharing", "mig")
_OWNERS: Final = {"chart": "helm", "operator": "operator"}
_OPTIONS: Final = ("renameByDefault", "failRequestsGreaterThanOne")
"""Options of a plugin's sharing that have the same names in a spec."""
_NOT_NAME: Final = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class Imported:
    """A cluster as a spec.

    Attributes:
        text: The spec, with its comments.
        pools: Number of pools in it.
        left_out: Names of GPU pools that a spec cannot express -> why.
        differing: Names of pools -> fields that differ between spec and live pool.
    """

    text: str
    pools: int
    left_out: Mapping[str, str]
    differing: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Found:
    """A live pool, its fields in a spec, and what a spec cannot express."""

    observed: Observed
    imported: ImportedPool
    comments: tuple[str, ...] = ()
    refusal: str = ""
    differs: tuple[str, ...] = ()


def import_cluster(plan: ClusterPlan, session: Session, pools: Sequence[Observed], owner: str) -> Imported:
    """Write the spec of a cluster's pools.

    Args:
        plan: The cluster as read, including its state inside if known.
        session: Session of that cluster; its cloud fills in what a spec leaves open.
        pools: The pools to write.
        owner: metadata.name of the spec.
    """
    found = _checked([_import_one(pool, plan, session, owner) for pool in pools], plan, session, owner)
    return Imported(
        "".join(f"{line}\n" for line in _lines(found, plan.cluster, owner)),
        sum(not one.refusal for one in found),
        {one.observed.name: one.refusal for one in found if one.refusal},
        {one.observed.name: one.differs for one in found if one.differs},
    )


def import_desired(
    plan: ClusterPlan, session: Session, pools: Sequence[Observed], owner: str
) -> tuple[tuple[tuple[Observed, Desired], ...], Mapping[str, str]]:
    """Return the spec's view of a cluster's pools, translated and completed.

    Args:
        plan: See `import_cluster`.
        session: Session of that cluster.
        pools: The pools to import.
        owner: metadata.name of the spec.

    Returns:
        Each pool with its desired state, and the names of pools that a spec cannot express -> why.
    """
    found = _checked([_import_one(pool, plan, session, owner) for pool in pools], plan, session, owner)
    expressible = [one for one in found if not one.refusal]
    desired = {
        one.target.name: session.cloud.complete(one)
        for one in (_load(expressible, plan.cluster, owner) if expressible else ())
    }
    left_out = {one.observed.name: one.refusal for one in found if one.refusal}
    return tuple((one.observed, desired[one.observed.name]) for one in expressible), left_out


def chosen_pools(plan: ClusterPlan, globs: Sequence[str]) -> list[Observed]:
    """Return the live GPU pools whose names match, sorted by name.

    Raises:
        SpecError: Globs are given, and no such pool matches.
    """
    live = [one for one in plan.live if live_machine(plan.cluster.provider, one) is not None]
    found = [one for one in live if not globs or any(fnmatchcase(one.name, glob) for glob in globs)]
    if globs and not found:
        known = ", ".join(sorted(one.name for one in live)) or "no GPU pools"
        fix = f"choose from: {known}"
        raise SpecError(
            f"--pool {' '.join(globs)} matches no live GPU pool", where=Where("--pool"), fix=fix, code="no-match"
        )
    return sorted(found, key=lambda one: one.name)


def spec_name(cluster: str) -> str:
    """Derive the name of a spec from a cluster's."""
    return _NOT_NAME.sub("-", cluster.lower()).strip("-")[:63].rstrip("-") or "imported"


def _import_one(observed: Observed, plan: ClusterPlan, session: Session, owner: str) -> _Found:
    facts = cast("ClusterFacts", plan.facts)  # a plan without facts has an error, and is not imported
    chosen = session.provider.extras.chosen_fields(observed)
    advertiser = observed.labels.get(ADVERTISER_LABEL)
    is_ours = advertiser in ("chart", "operator", "dra")
    served = is_ours or observed.fields.get(PLUGIN) == "cloud"
    imported = import_pool(observed, chosen, facts, served=served)
    if advertiser == "dra":
        cut = _mig_layout(observed, plan.cluster.provider)
        by_operator = chosen.get(DRIVER) == "none"  # with a driver of the user, gpukube does not serve it
        fields: dict[FieldPath, object] = {_OWNER: advertiser}
        fields |= ({_MIG: cut} if cut else {}) | ({DRIVER: "operator"} if by_operator else {})
        imported = imported.with_fields(fields)
    managed = tuple(
        f"{one.name} manages it ({one.sign}); to adopt it anyway: --adopt-managed --pool {observed.name}"
        for one in session.provider.extras.managers(observed)
    )
    carried = session.provider.extras.carried(observed)
    family = f"in the spec of {observed.owner} it is an alternative of {observed.family}; this one has no others"
    comments = (
        *imported.comments, *managed, *([carried] if carried else []), *([family] if observed.family else []),
    )  # fmt: skip
    found = _Found(observed, imported, comments)
    if is_ours and (sharing := _sharing(observed, plan)):
        comment = "sharing is read from gpukube's release in the cluster"
        data = {**imported.data, "sharing": _merged_sharing(tree(imported.data, "sharing"), sharing)}
        return replace(found, imported=replace(imported, data=data), comments=(*found.comments, comment))
    if served:
        return found
    found = replace(found, imported=replace(imported, data=_with_strategy(imported.data, observed, plan)))
    imported = found.imported
    by_cloud = replace(found, imported=imported.without("devicePlugin"))
    if _with_refusal(found, plan.cluster, owner).refusal and not _with_refusal(by_cloud, plan.cluster, owner).refusal:
        return by_cloud  # the image runs its own plugin, like Bottlerocket
    return replace(found, comments=(*found.comments, _advertiser_comment(by_cloud, plan, owner)))


def _with_strategy(data: Mapping[str, object], observed: Observed, plan: ClusterPlan) -> dict[str, object]:
    """Add the MIG strategy that another plugin uses on the nodes, if it is not the default.

    The resource names show it: with `mixed` they are those of the instances (NVIDIA/k8s-device-plugin README).
    """
    nodes = nodes_of_pool(plan.seen, observed) if plan.seen else ()
    mixed = any(name.startswith(_MIXED) for node in nodes for name in node.devices)
    if not mixed or not tree(data, "sharing", "mig"):
        return dict(data)
    sharing = {**tree(data, "sharing"), "mig": {**tree(data, "sharing", "mig"), "strategy": "mixed"}}
    return {**data, "sharing": sharing}


def _advertiser_comment(found: _Found, plan: ClusterPlan, owner: str) -> str:
    """Return a comment on which other component advertises the devices, and how to switch to gpukube.

    Args:
        found: The pool as if gpukube served it.
        plan: Its cluster.
        owner: metadata.name of the spec.
    """
    if plan.seen is None:
        return f"the component that advertises its devices is unknown: {plan.unknown or 'the cluster was not read'}"
    try:
        (served,) = _load([found], plan.cluster, owner)
    except SpecError:
        return "another component than gpukube advertises its devices"
    others = [one for one in find_advertisers(plan.seen, (served,)) if one.lands_on]
    if not others:
        return (
            "no component known to gpukube advertises its devices; to let gpukube do so, remove devicePlugin.owner and "
            "apply with --allow-disruption"
        )
    names = " and ".join(one.title for one in others)
    return (
        f"{names} advertises its devices; to hand them over: (1) remove devicePlugin.owner here; "
        f"(2) {others[0].fixes[1]}; (3) apply with --allow-disruption, since pods are running"
    )


def _sharing(observed: Observed, plan: ClusterPlan) -> dict[str, object]:
    """Read the sharing from a pool's entry in the configuration of gpukube's release."""
    key = observed.labels.get(CONFIG_LABEL, "")
    entries = {**(plan.seen.config_map or {}), **(plan.seen.operator_config_map or {})} if plan.seen else {}
    config = parse_yaml(entries[key]) if key in entries else None
    found: dict[str, object] = {}
    strategy = at(config, "flags", "migStrategy")
    if strategy in ("single", "mixed"):
        found["mig"] = {**_mig_layout(observed, plan.cluster.provider), "strategy": strategy}
    for block in ("timeSlicing", "mps"):
        shared = tree(config, "sharing", block)
        if shared:
            options = {name: value for name, value in shared.items() if name in _OPTIONS}
            found[block] = {"replicas": at(shared, "resources", 0, "replicas"), **options}
    return found


def _mig_layout(observed: Observed, provider: str) -> dict[str, object]:
    """Read the MIG layout of the GPU Operator's MIG manager from its label, if there is one."""
    machine = live_machine(provider, observed)
    instances = read_cut(observed.labels.get(MIG_CONFIG_LABEL, ""), machine.model) if machine else ()
    if len(instances) == 1:
        return {"profile": instances[0]}
    return {"layout": list(instances)} if instances else {}


def _merged_sharing(live: Mapping[str, object], sharing: Mapping[str, object]) -> dict[str, object]:
    """Merge the sharing of the release into that of the pool: the strategy into its profile."""
    mig = {**tree(live, "mig"), **tree(sharing, "mig")}
    others = {name: value for name, value in {**live, **sharing}.items() if name != "mig"}
    return {"mig": mig, **others} if mig else others


def _checked(found: Sequence[_Found], plan: ClusterPlan, session: Session, owner: str) -> list[_Found]:
    """Load the pools as a spec and compare them with the live ones; write what differs if a spec can express it.

    All pools together, since those of a cluster share one release, which affects their node labels.
    """
    checked = [_with_refusal(one, plan.cluster, owner) for one in found]
    differing: Mapping[str, tuple[Change, ...]] = {}
    for _ in range(_ROUNDS):
        try:
            differing = _differences([one for one in checked if not one.refusal], plan, session, owner)
        except SpecError as error:  # each is valid, but not together: two strategies for one operator
            return [one if one.refusal else replace(one, differs=_errors(error)) for one in checked]
        written = [_with_missing(one, differing.get(one.observed.name, ())) for one in checked]
        if written == checked:
            break
        checked = written
    left = _left_out([one for one in checked if not one.refusal], plan, session, owner)
    return [
        replace(
            one,
            comments=(*one.comments, *left.get(one.observed.name, ())),
            differs=tuple(map(_describe_change, differing.get(one.observed.name, ()))),
        )
        for one in checked
    ]


def _left_out(found: Sequence[_Found], plan: ClusterPlan, session: Session, owner: str) -> dict[str, tuple[str, ...]]:
    """Return a comment for each chosen member of the live pools that their spec does not have, by pool.

    Values are not shown: they may be secret.
    """
    members = session.provider.extras.members
    if members is None or not found:
        return {}
    live = {one.observed.name: one.observed for one in found}
    return {
        name: tuple(
            f"not in this spec, and a replacement would not have it: {one.path}"
            + (f" ({one.reason})" * bool(one.reason))
            for one in members.lost(live[name], _carried(session, desired, live[name]))
        )
        for desired in _load(found, plan.cluster, owner)
        if (name := desired.target.name) in live
    }


def _carried(session: Session, desired: Desired, live: Observed) -> Desired:
    """Return the replacement of a live pool; what it cannot take over, it does not have."""
    return carry_over(session.provider, session.cloud.complete(desired), live)[0]


def _errors(error: SpecError) -> tuple[str, ...]:
    return tuple(one.seen for one in error.diagnostics if one.severity == "error")


def _with_refusal(found: _Found, cluster: ClusterRef, owner: str) -> _Found:
    try:
        _load([found], cluster, owner)
    except SpecError as error:
        return replace(found, refusal="; ".join(_errors(error)))
    return found


def _differences(
    found: Sequence[_Found], plan: ClusterPlan, session: Session, owner: str
) -> dict[str, tuple[Change, ...]]:
    """Compare spec and live pools by name; what adopting adds is not a difference."""
    live = {one.observed.name: replace(one.observed, owner="", pool="") for one in found}
    differing = {}
    for desired in _load(found, plan.cluster, owner) if found else ():
        name = desired.target.name
        complete = session.cloud.complete(desired)
        planned = plan_pool(session.provider, complete, (live[name],), adopt=True, adopt_managed=True)
        now = adopting_changes(desired, planned.changes)
        differing[name] = tuple(one.change for one in planned.changes if one not in now)
    return differing


def _with_missing(found: _Found, differing: Sequence[Change]) -> _Found:
    """Add live fields that the spec lacks, and the owner of the plugin if the spec would choose another."""
    fields: dict[FieldPath, object] = {}
    for change in differing:
        if change.field == label(ADVERTISER_LABEL):
            fields[_OWNER] = _OWNERS.get(str(change.old), "none")
        elif change.old is not None and change.new is None and not change.field.is_below("nodes"):
            fields[change.field] = change.old
    return replace(found, imported=found.imported.with_fields(fields)) if fields else found


def _describe_change(change: Change) -> str:
    return f"{change.field} is {change.old}, and would become {change.new}"


def _load(found: Sequence[_Found], cluster: ClusterRef, owner: str) -> tuple[Desired, ...]:
    text = dump_data(_spec(found, cluster, owner))
    prepared = prepare(load_specs(["-"], stdin=io.StringIO(text), environ={}))
    return tuple(one for pools in prepared.desired.values() for one in pools)


def _spec(found: Sequence[_Found], cluster: ClusterRef, owner: str) -> SpecData:
    pools = [{"name": one.observed.name, "clusters": [cluster.key], **one.imported.data} for one in found]
    where = {"provider": cluster.provider, **cluster.identity, "name": cluster.name}
    head = {"apiVersion": "gpukube.io/v1alpha1", "kind": "GPUNodePools", "metadata": {"name": owner}}
    return cast("SpecData", {**head, "clusters": {cluster.key: where}, "pools": pools})


def _lines(found: Sequence[_Found], cluster: ClusterRef, owner: str) -> Iterator[str]:
    pools, they, them = ("pool", "it is", "it") if len(found) == 1 else ("pools", "they are", "them")
    yield f"# {len(found)} GPU {pools} of {cluster.name}, as {they} live. Cloud defaults are left out."
    yield f"# To adopt {them}: gpukube pool plan -f FILE --adopt, then gpukube pool apply -f FILE --adopt."
    expressible = [one for one in found if not one.refusal]
    spec = _spec(expressible, cluster, owner)
    written = cast("list[SpecData]", spec.pop("pools"))
    yield from dump_data(spec).splitlines()
    yield "pools:" if expressible else "pools: []"
    for one, data in zip(expressible, written, strict=True):
        machine = live_machine(cluster.provider, one.observed)
        if machine is not None:
            yield f"  # {machine.gpus:g} x {machine.model}"
        for comment in (*one.comments, *(f"differs: {text}" for text in one.differs)):
            yield from _comment(comment)
        yield from _pool_lines(data)
    for one in found:
        if one.refusal:
            yield from _comment(f"left out: {one.observed.name} ({one.observed.instance_type}): {one.refusal}")


def _comment(text: str) -> Iterator[str]:
    # Keep an option and its value on one line, as commands in comments are copied too.
    glued = re.sub(r"(--[\w-]+) (?=[^-\s])", "\\1\0", text)
    for line in wrap(glued, _WIDTH, break_on_hyphens=False, break_long_words=False):
        yield "  # " + line.replace("\0", " ")


def _pool_lines(data: SpecData) -> Iterator[str]:
    first, *others = dump_data(data).splitlines()
    yield f"  - {first}"
    yield from indent("\n".join(others), "    ").splitlines()
