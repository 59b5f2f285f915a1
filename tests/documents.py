"""A document of each kind that pipelines read, as the engine makes them of scenes with everything in them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gpukube.cluster.proof.outcome import Check, NodeProof, PoolProof, Probe, missing
from gpukube.core.values import Nodes
from gpukube.engine.documents.listing import list_document, pool_document
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.report import report_document
from gpukube.engine.documents.validation import lint_document, validation_document
from gpukube.engine.plan.prepare import Validation
from gpukube.engine.plan.silencing import Silenced
from gpukube.engine.run.report import ClusterReport, PoolReport
from gpukube.errors import CloudError, ClusterError, Finding, Where
from gpukube.spec.source.files import Source
from gpukube.usage.counting import usage_document
from gpukube.usage.documents import map_document
from gpukube.workload.lint.check import lint
from tests.builders import CLUSTER
from tests.screens.scenes import LIVE, PLANS, REPORTS, SAME, USAGE, WARNINGS
from tests.unit.usage.clusters import five

if TYPE_CHECKING:
    from collections.abc import Mapping

GPU = "nvidia.com/gpu"
RIGHT = NodeProof("node-0", {GPU: 56}, {GPU: 56}, (), (Check("condition Ready", "True", "True", holds=True),))
LOST = missing("node-1", "config-label", "error", "no label <config>", "whole GPUs", "kubectl label node node-1")
WRONG = NodeProof("node-1", {GPU: 56}, {GPU: 8}, (LOST,), (Check("label config", "c-1", "", holds=False),))
PROOF = PoolProof(
    "train-aks",
    "good",
    "proven",
    Nodes(1, 1, 1, autoscaled=False),
    1,
    (RIGHT,),
    (),
    {GPU: (56, 56)},
    {GPU: 56},
    Probe("passed", "sees 1g.5gb", GPU, "cuda:1", "node-0", ("GPU 0: \x1b[31mA100",)),
)
BROKEN = replace(
    PROOF,
    pool="bad",
    status="broken",
    per_node=(RIGHT, WRONG),
    probe=Probe("failed", "sees nothing", GPU, "cuda:1", "node-0", (), (replace(LOST, code="step-probe"),)),
)
UNPROVEN = ClusterError.of(
    [Finding("step-config-label", Where("train-aks/bad: node-1"), "no label", fix="label it")], "node-1: no label"
)
PROVEN = (
    ClusterReport(
        CLUSTER,
        (
            PoolReport("good", "good", "unchanged", "matches the spec", proof=PROOF),
            PoolReport("bad", "bad", "failed", "differs", proof=BROKEN, error=UNPROVEN),
            PoolReport("lost", "lost", "failed", "could not be read", error=ClusterError("no answer")),
            PoolReport("late", "late", "not-attempted", "no request was sent"),
            PoolReport(
                "zero",
                "zero",
                "unchanged",
                "matches the spec",
                proof=replace(PROOF, per_node=(), probe=Probe("skipped", "no node", GPU, "cuda:1")),
            ),
        ),
    ),
    ClusterReport(replace(CLUSTER, key="lost-aks"), (), error=CloudError("no cluster", fix="check", code="no-cluster")),
)
FOUND = (
    Finding("type", Where("pools.yaml", 4, 2), "pools[0].x is 1", fix="write y", why="because"),
    Finding("aks-name-length", Where("pools.yaml", 9, 7), '"abcdefghijkl" is long', fix="shorten", severity="warning"),
    Finding("sharing-isolation", Where("more.yaml", 12, 1), "shared", severity="hint"),
    Finding("set-path", Where("--set pools.x"), "no pool", fix="check -f"),
)
FILES = ("pools.yaml", "more.yaml", "fine.yaml")
ACCEPTED = Silenced(replace(FOUND[1], where=Where("more.yaml", 3, 1)), "known")
MANIFEST = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec:\n  containers:\n"
    "  - {name: main, resources: {requests: {nvidia.com/gpu: 1}}}\n"
)
DOCTOR: Final[Mapping[str, object]] = {
    "schemaVersion": 1,
    "kind": "Doctor",
    "exitCode": 1,
    "summary": {"error": 1, "warning": 1},
    "clusters": [
        {
            "cluster": "train-aks",
            "made": 40,
            "ailments": [
                {
                    "check": check,
                    "rule": "",
                    "title": "The plugin runs.",
                    "severity": severity,
                    "where": "node n1",
                    "seen": "labels[team] is gone",
                    "evidence": ["a line"],
                    "consequence": "what follows",
                    "remedy": "kubectl label node n1 team=a",
                    "link": "https://example.org",
                    "fix": fix,
                }
                for check, severity, fix in (("no-plugin", "error", "label node n1"), ("idle-gpus", "warning", None))
            ],
            "skipped": [{"check": "release-stuck", "reading": "releases"}],
            "mended": ["label node n2"],
            "unmended": [],
            "errors": [
                {
                    "severity": "error",
                    "id": "",
                    "code": "kube-forbidden",
                    "where": "train-aks",
                    "position": None,
                    "field": "",
                    "message": "not allowed",
                    "why": "",
                    "fix": "ask",
                }
            ],
        }
    ],
}

FIT: Final[Mapping[str, object]] = {
    "schemaVersion": 1,
    "kind": "Fit",
    "exitCode": 1,
    "live": False,
    "fits": False,
    "workloads": [
        {
            "object": "Deployment/web",
            "group": group,
            "namespace": "",
            "role": "replica",
            "position": {"file": "web.yaml", "line": line, "column": 5},
            "cluster": "train-aks",
            "requests": {"cpu": "1", "memory": "1Gi", "devices": {GPU: 1}, "claims": []},
            "least": 3,
            "most": 3,
            "state": "never" if never else "now",
            "now": 3 - never,
            "afterScaleUp": 0,
            "never": never,
            "unknown": 0,
            "elsewhere": 0,
            "places": [{"node": "n1", "pods": 1}],
            "reasons": [{"pool": "train-aks/t4", "why": ["its 1 node is full", "its maximum is 1"]}] if never else [],
            "edit": {"where": "train-aks/t4", "text": "write nodes.autoscaling.max: 3"} if never else None,
            "rollOut": None if never else {"pods": 1, "places": 0, "blocked": True, "fix": "write maxSurge: 0"},
        }
        for group, line, never in (("", 7, 2), ("small", 30, 0))
    ],
    "notPlaced": [],
    "nodes": [],
    "usdPerHour": None,
    "prices": [],
    "price": plan_document([], [])["summary"]["price"],
}

MADE: Final[Mapping[str, Mapping[str, Any]]] = {
    "Plan": plan_document(PLANS, WARNINGS),
    "Diff": plan_document(PLANS, WARNINGS, kind="Diff"),
    "same": plan_document(SAME, (), kind="Diff"),
    "PoolList": list_document(LIVE, USAGE),
    "Pool": pool_document(LIVE, "t4shared", USAGE),
    "Apply": report_document(REPORTS, kind="Apply"),
    "Verify": report_document(PROVEN, kind="Verify"),
    "Doctor": DOCTOR,
    "Validation": validation_document(Validation(1, 2, FOUND, (ACCEPTED,), {}, FILES)),
    "Fit": FIT,
    "Usage": usage_document(five()),
    "Map": map_document(five()),
    "Lint": lint_document(lint([Source("pod.yaml", MANIFEST)])),
}
DOCUMENTS: Final[Mapping[str, dict[str, Any]]] = {name: json.loads(json.dumps(made)) for name, made in MADE.items()}
"""By kind, and "same": a diff without differences."""
