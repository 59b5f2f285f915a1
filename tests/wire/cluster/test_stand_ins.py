"""The sandbox's charts beside NVIDIA's own: what both render from gpukube's values, and from others.

Each difference must be listed here with the reason why it decides nothing; the list is the answer to what the stand-ins
leave out.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpukube.cluster.names import ALL_KINDS, DRA_KINDS, NAMESPACE
from gpukube.cluster.release.dra_values import dra_values
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.reach import require_reach
from gpukube.cluster.release.rendered import require_rendered
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Taint
from gpukube_sandbox.kube.repository import CHART, DRA, OPERATOR, archive_name, chart_archive
from tests.unit.cluster.builders import MIXED, MPS, SINGLE, SLICED, VISION_TAINT, claimed, desire, operated
from tests.wire.cluster.real_charts import SWITCH, missing_charts, real_archive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Objects = Mapping[str, object]

VERSIONS = {CHART: ("0.20.0", "0.19.3", "0.17.4"), OPERATOR: ("v26.7.0",), DRA: ("0.4.1",)}


@dataclass(frozen=True, slots=True)
class Case:
    """One rendering."""

    chart: str
    version: str
    values: Mapping[str, object]
    namespace: str = NAMESPACE

    @property
    def release(self) -> str:
        """Name of the release."""
        return next(kind.name for kind in ALL_KINDS if kind.chart == self.chart)


POOLS = {
    "whole": desire(),
    "sliced": desire(sharing=SLICED),
    "MPS": desire(sharing=MPS),
    "MIG single": desire(sharing=SINGLE),
    "MIG mixed": desire(sharing=MIXED),
    "a taint": desire(taints=(VISION_TAINT,)),
}
OPERATED = {"sliced": operated(sharing=SLICED), "MIG mixed": operated(sharing=MIXED)}
GKE: Mapping[str, object] = {
    "nvidiaDriverRoot": "/home/kubernetes/bin/nvidia", "kubeletPlugin.priorityClassName": "",
}  # fmt: skip
CLAIMING = {
    "whole GPUs": claimed(),
    "a taint": claimed(taints=(VISION_TAINT, Taint("team", "", "NoExecute"))),
    "the operator's driver": claimed("/run/nvidia/driver"),
    "GKE": replace(claimed(), ownership=replace(claimed().ownership, values=GKE)),
    "more values": claimed(chart_values={"logVerbosity": "6", "image": {"repository": "mirror.example/dra"}}),
}
DRIVER: Mapping[str, object] = {"gpuResourcesEnabledOverride": True}
ALONE: Mapping[str, object] = {**DRIVER, "resources": {"computeDomains": {"enabled": False}}}
LABELLED = {"nodeSelector": {"gpukube.io/advertiser": "dra"}, "priorityClassName": ""}
TOLERANT = {"tolerations": [{"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}]}
UNPROBED = {"gpus": {"healthcheckPort": -1, "resources": {"limits": {"cpu": 1}}}}
BARE = {"metrics": {"enabled": False}, "containers": UNPROBED}
ADDED = {"containers": {"computeDomain": {"env": [{"name": "ADDITIONAL_NAMESPACES", "value": "ml, ops,ml"}]}}}
DRIVERS: Mapping[str, Mapping[str, object]] = {
    "GPUs and compute domains": DRIVER,
    "GPUs": ALONE,
    "compute domains": {"resources": {"gpus": {"enabled": False}}, "controller": {"affinity": None, **ADDED}},
    "a pool's label and no priority": {**ALONE, "kubeletPlugin": LABELLED},
    "a pool's taint": {**ALONE, "kubeletPlugin": TOLERANT},
    "the operator's driver": {**ALONE, "nvidiaDriverRoot": "/run/nvidia/driver/"},
    "GKE's driver": {**ALONE, "nvidiaDriverRoot": "/home/kubernetes/bin/nvidia", "kubeletPlugin": {"affinity": None}},
    "gates": {**DRIVER, "featureGates": {"MPSSupport": True, "PassthroughSupport": True, "DynamicMIG": False}},
    "an older API": {**ALONE, "resourceApiVersion": "resource.k8s.io/v1beta1"},
    "names": {**DRIVER, "nameOverride": "nvidia-dra-driver-gpu", "fullnameOverride": "dra", "namespaceOverride": "x"},
    "an account": {**ALONE, "serviceAccount": {"create": False, "name": "dra"}, "image": {"tag": "v1"}},
    "secrets and paths": {
        **DRIVER, "imagePullSecrets": [{"name": "a"}, {"name": "b"}], "altProcDevices": "/p", "nvidiaCDIHookPath": "/h",
    },
    "bare": {**ALONE, "kubeletPlugin": {**BARE, "podAnnotations": {"a": "b"}, "networkPolicy": {"enabled": True}}},
}  # fmt: skip
CLAIMED: Mapping[str, Mapping[str, object]] = {
    f"gpukube's of {name}": dra_values([pool], ReleaseContext()) for name, pool in CLAIMING.items()
}
NONE: Mapping[str, object] = {}
CASES = {
    **{
        f"plugin {version}, {name}": Case(CHART, version, chart_values([pool], ReleaseContext()))
        for version in VERSIONS[CHART]
        for name, pool in POOLS.items()
    },
    **{
        f"operator {version}, {name}": Case(OPERATOR, version, operator_values([pool], ReleaseContext()))
        for version in VERSIONS[OPERATOR]
        for name, pool in OPERATED.items()
    },
    **{
        f"driver {version}, {name}": Case(DRA, version, values)
        for version in VERSIONS[DRA]
        for name, values in {**DRIVERS, **CLAIMED}.items()
    },
    **{
        f"{chart} {version}, no values": Case(chart, version, NONE)
        for chart in (CHART, OPERATOR)
        for version in VERSIONS[chart]
    },
}

_OPERANDS = (
    "ccManager|dcgm|dcgmExporter|gdrcopy|gds|kataManager|kataSandboxDevicePlugin|nodeStatusExporter|sandboxDevicePlugin"
    "|sandboxWorkloads|vfioManager|vgpuDeviceManager|vgpuManager"
)
ALLOWED: dict[str, str] = {
    r"checksum/config$": "the digest of a config that differs in comments",
    r"\.template\.spec\.hostNetwork$": "false, which is the default",
    r"^(Deployment .*-master|Job .*-prune) .*\.nodeAffinity\.preferred": (
        "a preference for the control planes' former label, which no cloud's nodes have"
    ),
    r"^Deployment gpu-operator .*openshift\.io/scc$": "of OpenShift",
    r"^Deployment gpu-operator .*\.env\[(DRIVER_MANAGER_IMAGE|VALIDATOR_IMAGE|WATCH_NAMESPACE)\]": (
        "read by the operator's own program, which the sandbox imitates without them"
    ),
    r"^DaemonSet .*-kubelet-plugin .*\.args\[0\]$": "the real one masks a file of the host first, in shell",
    r"^ClusterPolicy .*\.(image|imagePullPolicy|repository|version)$": "images of operands, of which none is pulled",
    r"^ClusterPolicy cluster-policy \.metadata\.labels\.app\.kubernetes\.io/component$": "read by nobody",
    rf"^ClusterPolicy cluster-policy \.spec\.({_OPERANDS})\.": "operands that the sandbox's operator does not run",
    r"^ClusterPolicy cluster-policy \.spec\.daemonsets\.(labels|rollingUpdate)\.": (
        "of operands' DaemonSets; the sandbox's are replaced at once"
    ),
    r"^ClusterPolicy cluster-policy \.spec\.driver\.(licensingConfig|rdma|startupProbe|upgradePolicy)\.": (
        "of the driver's containers; the sandbox's machines have a driver or have none"
    ),
}
"""Pattern of a difference -> why it decides nothing."""

RENDER = """
import base64, json, sys, helm_python
for line in sys.stdin:
    case = json.loads(line)
    with helm_python.Chart.load_archive(base64.b64decode(case["archive"])) as chart:
        made = chart.render(values=case["values"], name=case["name"], namespace=case["namespace"])
    print(json.dumps(made), flush=True)
"""
"""In a process of its own: Helm brings Go's runtime along."""


def rendered(archive: bytes, case: Case) -> dict[str, Any]:
    """Render a chart; objects by kind, name and namespace."""
    done = _render(archive, case)
    assert done.returncode == 0, done.stderr
    texts = [text for path, text in json.loads(done.stdout).items() if not path.endswith("NOTES.txt")]
    found = [item for text in texts for item in yaml.safe_load_all(text) if item]
    return {_title(item): item for item in found}


def _title(item: Mapping[str, Any]) -> str:
    """Name an object; a chart may make one of a name in several namespaces."""
    place = item["metadata"].get("namespace", NAMESPACE)
    return f"{item['kind']} {item['metadata']['name']}" + (f" in {place}" if place != NAMESPACE else "")


def _render(archive: bytes, case: Case) -> subprocess.CompletedProcess[str]:
    asked = {
        "archive": base64.b64encode(archive).decode(), "values": case.values, "name": case.release,
        "namespace": case.namespace,
    }  # fmt: skip
    return subprocess.run(
        [sys.executable, "-c", RENDER], input=json.dumps(asked), capture_output=True, text=True, check=False
    )


def differences(real: Objects, own: Objects) -> list[str]:
    """Name each path that differs, "Kind name .path: real != own"; a list's items are told apart by their names."""
    found: list[str] = []
    for name in sorted({*real, *own}):
        if name not in own or name not in real:
            found.append(f"{name}: {'only in the real chart' if name in real else 'only in the stand-in'}")
            continue
        sides = dict(_leaves(real[name])), dict(_leaves(own[name]))
        paths = sorted({*sides[0], *sides[1]})
        found += [
            f"{name} {path}: {sides[0].get(path)!r} != {sides[1].get(path)!r}"
            for path in paths
            if sides[0].get(path) != sides[1].get(path)
        ]
    return found


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield what is set; empty values are as good as none."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            name = inner.get("mountPath") or inner.get("name") if isinstance(inner, dict) else None
            yield from _leaves(inner, f"{path}[{name or at}]")
    elif value not in (None, ""):
        yield path, value


def deciding(found: list[str]) -> list[str]:
    """Leave out what is allowed."""
    return [text for text in found if not any(re.search(pattern, text.partition(": ")[0]) for pattern in ALLOWED)]


def real_chart(case: Case) -> bytes:
    """Read the real archive of a case; skip the test where the switch names none."""
    name = archive_name(case.version, case.chart)
    if missing_charts(name):
        pytest.skip(f"{SWITCH} names no directory with {name}")
    return real_archive(case.chart, case.version)


@pytest.mark.charts
@pytest.mark.parametrize("name", CASES)
def test_stand_in_when_rendered_then_as_the_real_chart_in_all_that_decides(name: str) -> None:
    case = CASES[name]
    real = rendered(real_chart(case), case)
    own = rendered(chart_archive(case.version, case.chart), case)
    assert deciding(differences(real, own)) == []


TLS: Mapping[str, object] = {"enabled": True, "tls": {"mode": "secret"}}
REFUSED = {
    "no override": (Case(DRA, "0.4.1", NONE), "gpuResourcesEnabledOverride=true"),
    "the default namespace": (Case(DRA, "0.4.1", ALONE, "default"), "allowDefaultNamespace=true"),
    "a namespace in values": (Case(DRA, "0.4.1", {**ALONE, "namespace": "x"}), "Value 'namespace' set to x"),
    "a toolkit": (Case(DRA, "0.4.1", {**ALONE, "nvidiaCtkPath": "/x"}), "nvidiaCtkPath is no longer supported"),
    "a webhook without a certificate": (Case(DRA, "0.4.1", {**ALONE, "webhook": TLS}), "Secret name is required"),
}


def test_stand_in_of_the_dra_driver_when_refused_then_the_output_has_the_words_of_the_real_one() -> None:
    archive = chart_archive("0.4.1", DRA)
    accepted = {name for name, (case, words) in REFUSED.items() if words not in _render(archive, case).stderr}
    assert accepted == set()


@pytest.mark.charts
@pytest.mark.parametrize("name", REFUSED)
def test_real_chart_of_the_dra_driver_when_refused_then_with_these_words(name: str) -> None:
    case, words = REFUSED[name]
    assert words in _render(real_chart(case), case).stderr


def test_differences_when_two_objects_differ_then_each_path_is_named() -> None:
    real = {"Pod a": {"spec": {"env": [{"name": "X", "value": "1"}], "hostNetwork": False}}, "Job b": {}}
    own = {"Pod a": {"spec": {"env": [{"name": "X", "value": "2"}], "empty": []}}, "Role c": {}}
    assert differences(real, own) == [
        "Job b: only in the real chart",
        "Pod a .spec.env[X].value: '1' != '2'",
        "Pod a .spec.hostNetwork: False != None",
        "Role c: only in the stand-in",
    ]


def test_deciding_when_a_difference_is_listed_then_left_out() -> None:
    harmless = "DaemonSet x .spec.template.metadata.annotations.checksum/config: 'a' != 'b'"
    deciding_one = "DaemonSet x .spec.template.spec.nodeSelector.a: 'b' != None"
    assert deciding([harmless, deciding_one]) == [deciding_one]


@pytest.mark.parametrize("archive", [pytest.param("real", marks=pytest.mark.charts), "stand-in"])
@pytest.mark.parametrize("name", CLAIMING)
def test_chart_of_the_dra_driver_when_rendered_with_gpukube_s_values_then_its_checks_pass(
    name: str, archive: str
) -> None:
    pool = CLAIMING[name]
    plan = plan_release([pool], Snapshot(), kinds=DRA_KINDS)
    case = Case(DRA, plan.version, plan.values)
    objects = rendered(real_chart(case) if archive == "real" else chart_archive(plan.version, DRA), case).values()
    require_rendered(yaml.safe_dump_all(objects), plan)
    require_reach(objects, plan, [pool])
