"""Why a pool's driver and device plugin have their owners, as a document: facts, rules, settings, alternatives.

In scope: converting explanations (plan.ownership) and snapshots of their clusters to plain data. Out of scope:
rendering.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cluster.names import ALL_KINDS, DRA_KINDS, NAMESPACE, RELEASE_KINDS
from gpukube.cluster.release.plan import plan_release, value_changes
from gpukube.cluster.state.advertisers import find_advertisers
from gpukube.cluster.state.nfd import find_nfd
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.jsontree import at
from gpukube.core.owners import DRIVER_ROWS, PLUGIN_ROWS, RELEASE_ROWS
from gpukube.core.owners.labels import LABEL_REASONS
from gpukube.core.owners.solver import cut_of
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.cluster.state.advertisers import ForeignAdvertiser
    from gpukube.core.owners import Decision
    from gpukube.core.values import Desired, Target
    from gpukube.engine.documents.shapes.explanation import (
        Alternative,
        Fact,
        OwnerDocument,
        OwnerPart,
        Row,
        Setting,
    )
    from gpukube.engine.plan.ownership import Explained


def owner_document(
    found: Sequence[Explained], seen: Mapping[str, Snapshot], against: Mapping[str, Sequence[Finding]]
) -> OwnerDocument:
    """Return the reasons, per cluster.

    Args:
        found: The pool on each of its clusters.
        seen: Snapshot by key of the clusters that were read.
        against: Errors of a plan of the live cluster, by cluster key.
    """
    parts = [
        _part(explained, seen.get(key), against.get(key, ()))
        for explained in found
        for key in [explained.decision.target.cluster.key]
    ]
    return {"schemaVersion": 1, "kind": "OwnerExplanation", "pools": parts}


def _part(explained: Explained, seen: Snapshot | None, against: Sequence[Finding]) -> OwnerPart:
    decision, desired = explained.decision, explained.desired
    own = [decision.outcome] if isinstance(decision.outcome, Finding) else []
    near = {problem.where for problem in explained.problems}
    refusals = [*explained.problems, *(d for d in own if d.where not in near), *against]
    owner = desired.ownership if desired else None
    return {
        "cluster": decision.target.cluster.key,
        "pool": decision.target.pool,
        "looked": seen is not None,
        "driver": owner.driver if owner else None,
        "devicePlugin": owner.advertiser if owner else None,
        "reason": owner.reason if owner else _message(refusals[0], decision),
        "facts": [*_facts(decision), *_seen(seen, explained)],
        "rows": _rows(decision),
        "settings": list(_settings(decision, desired, seen)) if desired else [],
        "refusals": [{"code": d.code, "message": _message(d, decision), "why": d.why, "fix": d.fix} for d in refusals],
        "alternatives": [_alternative(other, problems) for other, problems in explained.others],
    }


def _facts(decision: Decision) -> Iterator[Fact]:
    target, stack = decision.target, decision.stack
    driver = "has the driver" if stack.driver == "cloud" else "has no driver"
    runs = "runs the cloud's plugin" if stack.advertiser == "cloud" else "runs no plugin"
    requests = f"devicePlugin.owner {target.plugin_owner}, driver.owner {target.driver_owner}"
    yield {"fact": "asked", "value": requests, "source": str(target.locator.at("devicePlugin.owner"))}
    yield {
        "fact": "machine",
        "value": f"{target.machine.name}, {target.machine.gpus:g} x {target.machine.model}",
        "source": "catalog",
    }
    yield {"fact": "nodes", "value": f"{stack.image} {driver} and {runs}", "source": stack.source}
    yield {"fact": "sharing", "value": _sharing(target), "source": str(target.locator.at("sharing"))}
    if target.sharing.mig:
        yield {"fact": "cut by", "value": _CUTTERS[cut_of(target, stack)], "source": stack.source}
    if stack.no_operator:
        yield {"fact": "operator", "value": f"cannot serve these nodes: {stack.no_operator}", "source": stack.source}


_OF_CLOUD = "the cloud asks for it where NVIDIA's DRA driver publishes GPUs"
_CUTTERS = {
    "cloud": "the cloud, by a field of the pool or a setting of the node",
    "operator": "the GPU Operator's MIG manager only",
    "nobody": "nobody",
}


def _sharing(target: Target) -> str:
    cut, slicing = target.sharing.mig, target.sharing.slicing
    words = [
        f"MIG {cut}, strategy {cut.strategy}" if cut else "",
        f"{slicing.mode}, {slicing.replicas} replicas" if slicing else "",
    ]
    return " and ".join(word for word in words if word) or "whole GPUs"


def _seen(seen: Snapshot | None, explained: Explained) -> Iterator[Fact]:
    """Yield the facts from the cluster's snapshot."""
    if seen is None:
        yield {"fact": "cluster", "value": "not read; add --live", "source": "the spec"}
        return
    for kind in ALL_KINDS:
        release = seen.release_of(kind)
        message = f"revision {release.revision} is {release.status}" if release else "does not exist"
        yield {
            "fact": "release",
            "value": f"{kind.address} ({kind.title}) {message}",
            "source": f"Secrets of {NAMESPACE}",
        }
    pools = [explained.desired] if explained.desired else []
    yield from _other_advertisers(seen, pools)
    message = "exists" if find_nfd(seen) else "does not exist"
    yield {"fact": "features", "value": f"node-feature-discovery {message}", "source": "DaemonSets of the cluster"}


def _other_advertisers(seen: Snapshot, pools: Sequence[Desired]) -> Iterator[Fact]:
    """Yield advertisers of other owners, similar ones on one line: GKE has one for each machine size."""
    served = any(pool.ownership.advertiser == "cloud" for pool in pools)
    alike: dict[tuple[str, str], list[ForeignAdvertiser]] = {}
    for item in find_advertisers(seen, pools):
        own = served and item.is_clouds_own
        verdict = "could run on" if item.lands_on else "is the cloud's plugin for" if own else "does not run on"
        alike.setdefault((item.kind, verdict), []).append(item)
    for (_, verdict), items in alike.items():
        more = f" and {len(items) - 1} more like it" if len(items) > 1 else ""
        value = f"{items[0].title}{more}: {verdict} these nodes"
        yield {"fact": "advertiser", "value": value, "source": items[0].evidence}


def _rows(decision: Decision) -> list[Row]:
    release = next(row for row in RELEASE_ROWS if row.name == decision.choice.row)
    driver = next(row for row in DRIVER_ROWS if row is decision.driver)
    plugin = next(row for row in PLUGIN_ROWS if row is decision.plugin)
    return [
        {"table": "release", "row": release.name, "says": decision.choice.because, "source": release.source},
        {"table": "driver", "row": driver.name, "says": decision.driver_reason, "source": driver.source},
        {"table": "plugin", "row": plugin.name, "says": decision.plugin_reason, "source": plugin.source},
    ]


def _settings(decision: Decision, desired: Desired, seen: Snapshot | None) -> Iterator[Setting]:
    for key, value in desired.ownership.labels.items():
        yield {"kind": "label", "name": key, "value": value, "why": LABEL_REASONS.get(key, _OF_CLOUD)}
    for path in decision.stack.fields:
        sent = at(desired.create.params, *(int(word) if word.isdecimal() else word for word in path.split(".")))
        if sent is not None:
            yield {"kind": "field", "name": path, "value": sent, "why": f"{desired.create.operation} of the pool"}
    releases = [plan_release([desired], seen or Snapshot(), kinds=kinds) for kinds in (RELEASE_KINDS, DRA_KINDS)]
    for release in releases:
        for change in value_changes({}, release.values) if release.action != "conflict" else ():
            yield {"kind": "value", "name": change.path, "value": change.new, "why": f"of release {release.name}"}


def _message(found: Finding, decision: Decision) -> str:
    """Remove the pool's name, under which the message is shown."""
    return found.seen.removeprefix(f"{decision.target.where}: ")


def _alternative(other: Decision, problems: Sequence[Finding]) -> Alternative:
    requested, row = other.target.plugin_owner, other.plugin.name
    against = [*problems, *([other.outcome] if isinstance(other.outcome, Finding) else [])]
    if against:
        message = _message(against[0], other)
        return {"asked": requested, "devicePlugin": None, "row": row, "says": message, "fix": against[0].fix}
    return {"asked": requested, "devicePlugin": other.plugin.answer, "row": row, "says": other.plugin_reason, "fix": ""}
