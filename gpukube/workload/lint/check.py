"""Checks manifests against the rules and the pools' offers.

Pure. In scope: applying all rules to all objects. Out of scope: the rules, reading files.
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
    """Result of linting manifests.

    findings: Findings, by position.
        ignored: Findings that the manifests ignore.
        manifests: Number of objects.
        templates: Number of pod templates.
        resources: Number of limits and requests of NVIDIA's resources outside of them.
        unjudged: Objects that name devices in places with unknown meaning, with those names.
        fields: Position of a finding -> path of the field there.
        edits: Finding -> what --fix would do.
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
    """Apply all rules to manifests.

    Args:
        sources: Texts with the names for positions.
        offers: Offers of a spec's pools; None without a spec.
        strict: Treat warnings as errors.
        problems: Problems with the files themselves, to report with the rest.
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
    """Add the object's name to a finding in stdin, where a line number says little."""
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
    """Return the fields at the positions of findings; each is in the last object that starts before it."""
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
