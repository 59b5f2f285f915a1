"""Draining pools by name on each cloud: ours only, with consent only, and undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lightkube import Client, KubeConfig
from lightkube.models.core_v1 import PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, Pod

from gpukube.sandbox.environment import kubeconfig
from tests.cli.harness import EXAMPLES, Gpukube
from tests.waiting import wait_for

if TYPE_CHECKING:
    from gpukube.sandbox.daemon import SandboxInfo

CLOUDS = {
    "aks": ("aks-timeslicing.yaml", "t4shared", "nodepool1"),
    "eks": ("eks-timeslicing.yaml", "t4shared", "system"),
    "gke": ("gke-timesharing.yaml", "l4shared", "default-pool"),
}
"""Example, its pool, and a pool of nobody's."""


def client(info: SandboxInfo, cloud: str) -> Client:
    """Connect to the cluster of a cloud."""
    document: dict[str, Any] = kubeconfig(info)["kubeconfig"]  # type: ignore[assignment]  # one of several documents
    starts = {"aks": "train", "eks": "arn:", "gke": "gke_"}[cloud]
    (context,) = [str(entry["name"]) for entry in document["contexts"] if str(entry["name"]).startswith(starts)]
    return Client(KubeConfig.from_dict({**document, "current-context": context}), trust_env=False)


def cordoned(kube: Client, pool: str) -> list[bool]:
    nodes = [node.to_dict() for node in kube.list(Node, labels={"gpukube.io/pool": pool})]
    return [bool(node["spec"].get("unschedulable")) for node in nodes]


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_drain_on_a_cloud_when_asked_then_ours_only_with_consent_only_and_undone(cloud: str, gpukube: Gpukube) -> None:
    example, pool, stranger = CLOUDS[cloud]
    spec = EXAMPLES / example
    gpukube.made("-f", spec)
    kube = client(gpukube.info, cloud)
    bare: dict[str, Any] = {"containers": [{"name": "main", "image": "work:1", "command": ["sleep", "infinity"]}]}
    bare |= {"nodeSelector": {"gpukube.io/pool": pool}, "tolerations": [{"operator": "Exists"}]}
    made = Pod(metadata=ObjectMeta(name="bare", namespace="default"), spec=PodSpec.from_dict(bare))  # type: ignore[arg-type]  # typed as its mixin
    kube.create(made)
    wait_for(lambda: kube.get(Pod, "bare", namespace="default").to_dict()["status"].get("phase") == "Running")

    def refused(*words: str) -> str:
        result = gpukube("pool", "drain", *words, "--yes")
        assert result.code == 1, result.out + result.err
        assert cordoned(kube, pool) == [False, False]
        return result.out + result.err

    assert "drain-consent" in refused(pool, "-f", str(spec))
    assert "[not-ours]: it has no gpukube.io/owner label" in refused(stranger, "-f", str(spec))
    assert "[not-ours]: it belongs to" in refused(pool, "-f", str(spec), "--set", "metadata.name=others")
    done = gpukube("pool", "drain", pool, "-f", spec, "--yes", "--allow-disruption", "-o", "json")
    assert (done.code, done.pools()[0]["outcome"]) == (0, "done"), done.out + done.err
    assert "default/bare leaves only with --allow-disruption: nothing creates it again" in done.err
    assert cordoned(kube, pool) == [True, True]
    assert "bare" not in {pod.metadata.name for pod in kube.list(Pod, namespace="default") if pod.metadata}
    undone = gpukube("pool", "drain", pool, "-f", spec, "--undo")
    assert (undone.code, "uncordoned 2 nodes" in undone.out) == (0, True), undone.out + undone.err
    assert cordoned(kube, pool) == [False, False]
    protected = gpukube("pool", "apply", "-f", spec, "--set", "pools[0].deletionProtection=true", "--yes")
    assert protected.code == 0, protected.out + protected.err
    assert "protected]: its nodes would be drained, but it is protected" in refused(pool, "-f", str(spec))
    kube.close()
