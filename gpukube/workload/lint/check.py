"""Manifests and the offers of pools -> what is wrong.

Pure. In scope: putting all rules to all objects. Out of scope: the rules, reading files.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gpukube.errors import Finding, Where, in_order
from gpukube.workload.lint.ignores import annotated, apply_ignores, comments
from gpukube.workload.lint.registry import CONTAINER_RULES, OBJECT_RULES, POD_RULES, RAY_RULES, WORLD_RULES
from gpukube.workload.lint.world import World
from gpukube.workload.manifests import read_manifests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpukube.spec.source.files import Source
    from gpukube.workload.lint.edits import Edit
    from gpukube.workload.lint.ignores import Ignore, Ignored
    from gpukube.workload.lint.rule import Hit, Rule
    from gpukube.workload.lint.views import Loose, Pod
    from gpukube.workload.manifests import Manifest
    from gpukube.workload.offers import PoolOffer

STDIN: Final = "-"


@dataclass(frozen=True, slots=True)
class Linted:
    """What is found in manifests.

    Attributes:
        findings: In the order of their places.
        ignored: What the manifests accept.
        manifests: How many objects there are.
        templates: How many pod templates they have.
        resources: How many limits and requests of NVIDIA's resources they have elsewhere.
        unjudged: Objects that name devices where their meaning is not known, with those names.
        fields: By place of a finding, the path of the field that stands there.
        edits: By finding, what --fix would do.
        files: Names of the texts.
    """

    findings: tuple[Finding, ...]
    ignored: tuple[Ignored, ...] = ()
    manifests: int = 0
    templates: int = 0
    resources: int = 0
    unjudged: tuple[str, ...] = ()
    fields: Mapping[Where, str] = field(default_factory=dict)
    edits: Mapping[Finding, tuple[Edit, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        """Whether there are no errors."""
        return not any(finding.severity == "error" for finding in self.findings)


def lint(
    sources: Sequence[Source],
    *,
    offers: Sequence[PoolOffer] | None = None,
    strict: bool = False,
    problems: Sequence[Finding] = (),
) -> Linted:
    """Put all rules to manifests.

    Args:
        sources: Texts with the names for positions.
        offers: What the pools of a spec offer; None without a spec.
        strict: Take warnings for errors.
        problems: What is wrong with the files themselves, to be reported with the rest.
    """
    readings = [read_manifests(source.text, source.name) for source in sources]
    manifests = [manifest for reading in readings for manifest in reading.manifests]
    world = World(manifests, offers)
    hits: dict[Finding, tuple[Edit, ...]] = {}
    for rule, hit, manifest in _hits(world):
        finding = _named(rule.finding(hit), manifest)
        hits[finding] = hits.get(finding) or hit.edits  # templates that share an anchor have the same findings
    pods: dict[int, list[Pod]] = {}
    for pod in world.pods:
        pods.setdefault(id(pod.manifest), []).append(pod)
    ignores: list[Ignore] = []
    for source, reading in zip(sources, readings, strict=True):
        ignores += comments(source.name, source.text, reading.manifests)
        for manifest in reading.manifests:
            ignores += annotated(manifest, pods.get(id(manifest), ()))
    kept, ignored = apply_ignores(tuple(hits), ignores)
    unread = [*problems, *(problem for reading in readings for problem in reading.findings)]
    findings = in_order([*unread, *kept, *_none_at_all(sources, manifests, unread)])
    if strict:
        findings = [
            (replace(finding, severity="error") if finding.severity == "warning" else finding) for finding in findings
        ]
    return Linted(
        findings=tuple(findings),
        ignored=ignored,
        manifests=len(manifests),
        templates=len(world.pods),
        resources=len(world.loose),
        unjudged=world.unjudged,
        fields=_fields(manifests, {finding.where for finding in (*kept, *(one.finding for one in ignored))}),
        edits={finding: hits[finding] for finding in kept if hits.get(finding)},
        files=tuple(source.name for source in sources),
    )


def _hits(world: World) -> Iterator[tuple[Rule[Any], Hit, Manifest | None]]:
    holders: tuple[Pod | Loose, ...] = (*world.pods, *world.loose)
    stages: tuple[tuple[Iterable[Rule[Any]], Iterable[tuple[object, Manifest | None]]], ...] = (
        (CONTAINER_RULES, ((holder, holder.manifest) for holder in holders)),
        (POD_RULES, ((pod, pod.manifest) for pod in world.pods)),
        (RAY_RULES, ((cluster, cluster.manifest) for cluster in world.ray_clusters)),
        (OBJECT_RULES, ((manifest, manifest) for manifest in world.manifests)),
        (WORLD_RULES, ((world, None),)),
    )
    for rules, subjects in stages:
        for subject, manifest in subjects:
            for rule in rules:
                for hit in rule.find(subject, world):
                    yield rule, hit, manifest


def _named(finding: Finding, manifest: Manifest | None) -> Finding:
    """Add the object's name to what is found in stdin, where a line says little."""
    if finding.where.source != STDIN or manifest is None or str(manifest) in finding.seen:
        return finding
    return replace(finding, seen=f"{manifest}: {finding.seen}")


def _none_at_all(
    sources: Sequence[Source], manifests: Sequence[Manifest], problems: Sequence[Finding]
) -> Iterator[Finding]:
    if sources and not manifests and not problems:
        yield Finding(
            "no-manifest",
            Where(sources[0].name),
            "no Kubernetes object found",
            fix="pass manifests: documents with apiVersion and kind",
            severity="warning",
        )


def _fields(manifests: Sequence[Manifest], places: set[Where]) -> dict[Where, str]:
    """Find the fields that stand at the places of findings; each is in the last object that begins before it."""
    begins = sorted((manifest.positions.at(), number) for number, manifest in enumerate(manifests))
    marks: dict[int, dict[int, Where]] = {}
    for place in places:
        if index := bisect_right(begins, (place, len(manifests))):
            number = begins[index - 1][1]
            for mark in manifests[number].positions.origin.marks_of(place):
                marks.setdefault(number, {})[mark] = place
    return {
        wanted[mark]: path
        for number, wanted in marks.items()
        for mark, path in manifests[number].positions.paths_of(wanted).items()
    }
