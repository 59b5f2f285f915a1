"""`pool map` and `pool usage` of emulated clouds, as their users run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from lightkube.resources.core_v1 import Namespace, Pod

from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, Cluster, Gpukube
from tests.cli.terminal import Terminal
from tests.cli.test_claimed_pools import claim_one

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo

SINGLE = EXAMPLES / "aks-mig-single.yaml"
DRA = EXAMPLES / "aks-dra.yaml"
GPU = "nvidia.com/gpu"
SPACE = "usage-test"


@pytest.fixture
def holder(gpukube: Gpukube, cluster: Cluster) -> Iterator[str]:
    """Run a pod that holds three MIG instances, and one that waits for more than there are."""
    gpukube.made("-f", SINGLE)
    cluster.client.create(cast("Namespace", Namespace.from_dict({"metadata": {"name": SPACE}})))
    for name, count in (("holds", 3), ("waits", 5000)):
        resources = {"limits": {GPU: str(count)}}
        spec = {
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "i", "resources": resources}],
        }
        body = {"metadata": {"name": name, "namespace": SPACE}, "spec": spec}
        cluster.client.create(cast("Pod", Pod.from_dict(body)))
    wait_for(lambda: bool(cluster.client.get(Pod, "holds", namespace=SPACE).spec.nodeName), lambda: "not bound")  # type: ignore[union-attr]  # a pod has a spec
    yield SPACE
    for name in ("holds", "waits"):
        cluster.client.delete(Pod, name, namespace=SPACE, grace_period=0)
    cluster.client.delete(Namespace, SPACE)


def test_map_when_a_pod_holds_instances_then_counted_and_not_attributed(gpukube: Gpukube, holder: str) -> None:
    document = gpukube("pool", "map", "-f", SINGLE, "-o", "json").json()
    nodes = [node for cluster in document["clusters"] for pool in cluster["pools"] for node in pool["nodes"]]
    (found,) = (node for node in nodes if any(pod["namespace"] == holder for pod in node["pods"]))
    assert (found["attribution"], found["devices"]) == ("counts", [])
    (stock,) = found["stocks"]
    assert (stock["kind"], stock["profile"], stock["held"] + stock["free"]) == ("instance", "1g.5gb", stock["total"])
    assert [pod["devices"] for pod in found["pods"] if pod["namespace"] == holder] == [{GPU: 3}]
    shown = gpukube("pool", "map", "-f", SINGLE)
    assert shown.code == 0
    assert f"{holder}/holds 3" in shown.out
    assert f"waits: {holder}/waits for 5000 gpu" in shown.out
    spaces = gpukube("pool", "map", "-f", SINGLE, "--by", "namespace").out
    assert f"{holder}  holds 3 x 1g.5gb, USD/h: 1.46; waits for 5000 gpu" in spaces
    assert "□x" in gpukube("pool", "map", "-f", SINGLE, "--free").out


def test_usage_when_a_pod_holds_instances_then_its_part_of_the_price(gpukube: Gpukube, holder: str) -> None:
    document = gpukube("pool", "usage", "-f", SINGLE, "-o", "json").json()
    (space,) = (one for one in document["namespaces"] if one["namespace"] == holder)
    assert [(one["kind"], one["profile"], one["count"]) for one in space["held"]] == [("instance", "1g.5gb", 3)]
    assert space["waiting"] == {GPU: 5000}
    assert space["heldUsdPerHour"]["min"] == pytest.approx(27.197 * 3 / 56, abs=0.001)
    for output, words in (("csv", f",{holder},{GPU},"), ("markdown", f"| {holder} |"), ("openmetrics", "# EOF")):
        assert words in gpukube("pool", "usage", "-f", SINGLE, "-o", output).out


def test_map_when_pods_claim_gpus_then_each_device_has_its_pod(gpukube: Gpukube, claims: Cluster) -> None:
    claim_one(claims, "claimant")
    document: Any = gpukube("pool", "map", "-f", DRA, "--pool", "h100", "-o", "json").json()
    devices = [
        device
        for cluster in document["clusters"]
        for pool in cluster["pools"]
        for node in pool["nodes"]
        for device in node["devices"]
    ]
    assert len(devices) == 2
    (held,) = (device for device in devices if device["state"] == "held")
    (holder,) = held["holders"]
    assert (holder["namespace"], holder["pod"]) == ("default", "claimant")


@pytest.mark.parametrize(
    "words",
    [("--by", "node"), ("--watch",), ("--free", "--by", "namespace"), ("-o", "csv")],
    ids=" ".join,
)
def test_map_when_options_are_wrong_then_four_before_any_call(gpukube: Gpukube, words: tuple[str, ...]) -> None:
    result = gpukube("pool", "map", "-f", SINGLE, *words)
    assert (result.code, result.out) == (4, "")


def test_map_when_watched_then_drawn_on_a_screen_of_its_own_until_ctrl_c(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    gpukube.made("-f", SINGLE)
    with Terminal(sandbox, "pool", "map", "-f", SINGLE, "--watch") as terminal:
        terminal.expect("□x56  0/56 1g.5gb")
        assert "\x1b[?1049h" in terminal.seen, "the alternate screen"
        terminal.type("\x03")
        assert terminal.end() == 0
        assert "\x1b[?1049l" in terminal.seen, "back to the screen before"
        assert "Traceback" not in terminal.text
