"""The sandbox's charts beside NVIDIA's own: what both render from gpukube's values, and from none.

Each difference must be listed here with the reason why it decides nothing; the list is the answer to what the stand-ins
leave out.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR, NAMESPACE
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube_sandbox.kube.repository import CHART, OPERATOR, archive_name, chart_archive
from tests.unit.cluster.builders import MIXED, MPS, SINGLE, SLICED, VISION_TAINT, desire, operated
from tests.wire.cluster.real_charts import SWITCH, missing_charts, real_archive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Objects = Mapping[str, object]

VERSIONS = {CHART: ("0.20.0", "0.19.3", "0.17.4"), OPERATOR: ("v26.7.0",)}
MISSING = missing_charts(*(archive_name(version, chart) for chart in VERSIONS for version in VERSIONS[chart]))


@dataclass(frozen=True, slots=True)
class Case:
    """One rendering."""

    chart: str
    version: str
    values: Mapping[str, object]

    @property
    def release(self) -> str:
        """Name of the release."""
        return (DEVICE_PLUGIN if self.chart == CHART else GPU_OPERATOR).name


POOLS = {
    "whole": desire(),
    "sliced": desire(sharing=SLICED),
    "MPS": desire(sharing=MPS),
    "MIG single": desire(sharing=SINGLE),
    "MIG mixed": desire(sharing=MIXED),
    "a taint": desire(taints=(VISION_TAINT,)),
}
OPERATED = {"sliced": operated(sharing=SLICED), "MIG mixed": operated(sharing=MIXED)}
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
        f"{chart} {version}, no values": Case(chart, version, NONE) for chart in VERSIONS for version in VERSIONS[chart]
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
    """Render a chart; objects by kind and name."""
    asked = {
        "archive": base64.b64encode(archive).decode(), "values": case.values, "name": case.release,
        "namespace": NAMESPACE,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", RENDER], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    texts = [text for path, text in json.loads(done.stdout).items() if not path.endswith("NOTES.txt")]
    found = [item for text in texts for item in yaml.safe_load_all(text) if item]
    return {f"{item['kind']} {item['metadata']['name']}": item for item in found}


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


@pytest.mark.charts
@pytest.mark.skipif(bool(MISSING), reason=f"{SWITCH} names no directory with {', '.join(MISSING)}")
@pytest.mark.parametrize("name", CASES)
def test_stand_in_when_rendered_then_as_the_real_chart_in_all_that_decides(name: str) -> None:
    case = CASES[name]
    real = rendered(real_archive(case.chart, case.version), case)
    own = rendered(chart_archive(case.version, case.chart), case)
    assert deciding(differences(real, own)) == []


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
