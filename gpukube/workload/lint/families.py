"""Rules about pods of a pool with alternatives: they run on whichever alternative has the nodes.

Pure. Out of scope: which of them that is (engine.plan.families), orders of autoscalers (core.expander).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.workload.lint.placement import add_toleration, toleration_text
from gpukube.workload.lint.places import lacks_label
from gpukube.workload.lint.rule import Hit, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.workload.lint.places import Place, Places
    from gpukube.workload.lint.views import Pod
    from gpukube.workload.lint.world import World

PODS: Final[Rules[Pod]] = Rules()


@PODS.rule(
    "alternative-missed",
    severity="warning",
    why="the pod stays Pending while another alternative has the nodes",
    fix="select the family, and what all of its pools have",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/",
)
def _missed(pod: Pod, world: World) -> Iterator[Hit]:
    places = world.places(pod)
    if places is None or not (pod.gpus or world.gpu_claims(pod)):
        return
    for members in _families(places):
        reached = [place for place in members if place in places.open]
        missed = [place for place in members if place not in places.open]
        if reached and missed:
            yield from _reasons(pod, places, members, missed)


def _families(places: Places) -> list[list[Place]]:
    """Return the families of which the pod may be one: it selects their pools, by whatever label."""
    found: dict[tuple[str, str, str], list[Place]] = {}
    for place in places.every:
        if place.offer.family and places.selects:
            found.setdefault(place.offer.family, []).append(place)
    return [members for members in found.values() if len(members) > 1]


def _reasons(pod: Pod, places: Places, members: list[Place], missed: list[Place]) -> Iterator[Hit]:
    """Yield what keeps a pod off the alternatives that it cannot reach: the first cause of each."""
    family = members[0].offer.desired.target.family
    unchosen = [place for place in missed if place not in places.chosen]
    selected = {(key, value) for key, value, _ in pod.required_labels}
    for key, value, path in pod.required_labels if unchosen else ():
        without = [place for place in unchosen if lacks_label(place.offer, key, value)]
        if without:
            names = ", ".join(place.offer.desired.target.pool for place in without)
            ((own, name),) = members[0].offer.family_selector.items()
            where = pod.label_at(path)
            yield Hit(
                where=where,
                seen=f"the pod requires {key}{f': {value}' if value else ''}, which nodes of {names} do not have",
                why=f"it stays Pending while {names} {'has' if len(without) == 1 else 'have'} the nodes of {family}",
                fix=f"remove {key}" if (own, name) in selected else f"write {own}: {name} instead",
            )
            return
    for place in missed:
        if place in places.offering:
            for taint in place.untolerated:
                yield Hit(
                    where=pod.key_at("tolerations") if "tolerations" in pod.spec else pod.at(),
                    seen=f"{place.offer.desired.target.pool}, an alternative of {family}, has the taint {taint}, which "
                    "the pod does not tolerate",
                    fix=f"add {toleration_text(taint)} to tolerations",
                    edits=add_toleration(pod, taint),
                )
            return
