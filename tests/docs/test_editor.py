"""The published schema in an editor: what yaml-language-server offers, shows and marks.

Needs the real server: GPUKUBE_TEST_YAML_LS=/path/to/yaml-language-server (npm install yaml-language-server).
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.docs.editor import Editor
from tools.spec_docs import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = os.environ.get("GPUKUBE_TEST_YAML_LS", "")
pytestmark = pytest.mark.skipif(not SERVER, reason="GPUKUBE_TEST_YAML_LS names no yaml-language-server")

HEAD = """\
# yaml-language-server: $schema=gpukube.schema.json
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train: {provider: eks, account: "111122223333", region: us-east-1, name: train}
"""
GOOD = f"""{HEAD}pools:
  - name: a100
    clusters: [train]
    gpu: {{model: A100-40GB, count: 8}}
    nodes: {{count: 1}}
"""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    directory = tmp_path_factory.mktemp("specs")
    shutil.copy(SCHEMA, directory)
    with Editor(SERVER, directory) as found:
        yield found


OFFERS = {
    "version": (f"{HEAD.partition('apiVersion')[0]}apiVersion: |\n", {"gpukube.io/v1alpha1"}),
    "cloud": (f"{HEAD}  b:\n    provider: |\n", {"eks", "aks", "gke"}),
    "fields of the cloud": (f"{HEAD}  b:\n    provider: gke\n    |\n", {"project", "location", "name", "impersonate"}),
    "fields of a pool": (f"{GOOD}    |\n", {"sharing", "capacity", "zones", "deletionProtection"}),
    "GPU": (f"{HEAD}pools:\n  - name: a\n    gpu:\n      model: |\n", {"A100-40GB", "T4-16GB"}),
    "types": (f"{GOOD}    instanceType: |\n", {"p4d.24xlarge", "Standard_ND96asr_v4", "a2-highgpu-8g"}),
    "types of a cloud": (f"{GOOD}    instanceType:\n      gke: |\n", {"a2-highgpu-8g"}),
    "profile": (f"{GOOD}    sharing:\n      mig:\n        profile: |\n", {"1g.5gb", "3g.20gb"}),
    "choice": (f"{GOOD}    capacity:\n      type: |\n", {"on-demand", "spot", "reserved"}),
    "boolean": (f"{GOOD}    gpuTaint: |\n", {"true", "false"}),
    "defaults": (f"{HEAD}defaults:\n  sharing:\n    mps:\n      |\n", {"replicas"}),
    "snippet": (f"{GOOD}    labels: |\n", {"{team: vision}"}),
}


@pytest.mark.parametrize(("text", "expected"), OFFERS.values(), ids=OFFERS)
def test_completion_when_asked_then_offers_what_the_format_has(text: str, expected: set[str], editor: Editor) -> None:
    offered = editor.complete(text)
    assert expected <= set(offered)
    assert "[object Object]" not in offered


def test_completion_when_a_cloud_is_chosen_then_offers_nothing_of_another(editor: Editor) -> None:
    assert not set(editor.complete(OFFERS["fields of the cloud"][0])) & {"account", "subscription"}
    assert "p4d.24xlarge" not in editor.complete(OFFERS["types of a cloud"][0])


def test_hover_when_over_a_key_then_shows_what_it_means(editor: Editor) -> None:
    shown = editor.hover(GOOD.replace("model:", "mo|del:"))
    assert "GPU model of the catalog" in shown
    assert "A100-40GB" in shown


RIGHT = {
    "minimal": GOOD,
    "defaults complete a pool": f"{HEAD}defaults: {{gpu: {{model: T4, count: 1}}, nodes: {{count: 1}}}}\n"
    "pools: [{name: a, clusters: [train]}]\n",
    "variables": GOOD.replace("A100-40GB", '"${GPU:-T4}"').replace("111122223333", "${ACCOUNT}"),
    "a machine that is not known": f"{GOOD}    instanceType: {{eks: p9.48xlarge}}\n",
    "a share of nodes": f"{GOOD}    upgrade: {{maxSurge: 33%}}\n",
}


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_right_spec_when_opened_then_nothing_is_marked(text: str, editor: Editor) -> None:
    assert editor.problems(text) == []


WRONG = f"""{HEAD}  b: {{provider: aks, subscription: x, resourceGroup: m, name: n}}
  c: {{provider: gcp}}
pools:
  - name: a
    clusters: [train]
    gpu: {{model: A100-40GB, count: "8"}}
    nodes: {{count: 1}}
    sharing: {{mig: {{profile: 1g.5gb, stratgy: single}}}}
    capacity: {{type: sopt}}
    taints: [{{key: a}}]
    disk:
    kubernetesVersion: 1.34
  - name: b
    clusters: [train]
    instanceType: {{gcp: x}}
    nodes: {{count: 1}}
"""


def test_wrong_spec_when_opened_then_each_mistake_is_marked_once(editor: Editor) -> None:
    assert editor.problems(WRONG) == [
        (7, "expected an id such as 11111111-2222-3333-4444-555555555555"),
        (8, 'Value is not accepted. Valid values: "eks", "aks", "gke".'),
        (12, 'Incorrect type. Expected "integer".'),
        (14, "Property stratgy is not allowed."),
        (15, 'Value is not accepted. Valid values: "on-demand", "spot", "reserved".'),
        (16, 'Missing property "effect".'),
        (17, 'Incorrect type. Expected "Disk".'),
        (18, 'Incorrect type. Expected "string".'),
        (21, "Property gcp is not allowed."),
    ]
