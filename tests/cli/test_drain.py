"""Draining pools by name on each cloud: ours only, with consent only, and undone."""

from __future__ import annotations

import json
import shlex
import signal
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import pytest
from lightkube import Client, KubeConfig
from lightkube.models.core_v1 import PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Node, Pod
from lightkube.resources.policy_v1 import PodDisruptionBudget

from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, LONGEST_S, Gpukube, start_process

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

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
    assert "default/bare leaves only with --allow-disruption: nothing recreates it" in done.err
    assert cordoned(kube, pool) == [True, True]
    assert "bare" not in {pod.metadata.name for pod in kube.list(Pod, namespace="default") if pod.metadata}
    undone = gpukube("pool", "drain", pool, "-f", spec, "--undo")
    assert (undone.code, "uncordoned 2 nodes" in undone.out) == (0, True), undone.out + undone.err
    assert cordoned(kube, pool) == [False, False]
    protected = gpukube("pool", "apply", "-f", spec, "--set", "pools[0].deletionProtection=true", "--yes")
    assert protected.code == 0, protected.out + protected.err
    assert "protected]: its nodes would be drained, but it is protected" in refused(pool, "-f", str(spec))
    kube.close()


OTHER = {
    "aks": "pools[0].instanceType=Standard_NC8as_T4_v3",
    "eks": "pools[0].instanceType=g4dn.2xlarge",
    "gke": "pools[0].capacity.type=spot",
}
"""What cannot change on the live pool of the example."""


def keep_for_ever(kube: Client, pool: str) -> None:
    """Run a pod that a budget never lets go."""
    labels = {"app": "kept"}
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "work:1", "command": ["sleep", "infinity"]}],
        "nodeSelector": {"gpukube.io/pool": pool},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    }
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"matchLabels": labels}
    rules = {"replicas": 1, "selector": selector, "template": template}
    meta = {"name": "kept", "namespace": "default"}
    made = Deployment.from_dict({"metadata": meta, "spec": rules})
    budget = PodDisruptionBudget.from_dict({"metadata": meta, "spec": {"minAvailable": 1, "selector": selector}})
    assert isinstance(made, Deployment)
    assert isinstance(budget, PodDisruptionBudget)
    kube.create(made)
    kube.create(budget)
    pods = partial(kube.list, Pod, namespace="default", labels={**labels})
    wait_for(lambda: any(pod.status and pod.status.phase == "Running" for pod in pods()))


def way_back(said: str) -> list[str]:
    """Return the words of the command that a text names to give a drain up."""
    words = shlex.split(said.partition("to give up: ")[2].replace("\n", " "))
    return [word for word in takewhile(lambda word: not word.startswith("("), words) if word != "--sandbox"][1:]


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_surge_when_its_drain_is_stopped_then_says_what_stands_and_the_printed_way_back_works(
    cloud: str, gpukube: Gpukube
) -> None:
    example, pool, _ = CLOUDS[cloud]
    spec = EXAMPLES / example
    gpukube.made("-f", spec)
    kube = client(gpukube.info, cloud)
    keep_for_ever(kube, pool)
    options = ("-f", spec, "--set", OTHER[cloud], "--replace", "surge")
    plan = gpukube("pool", "plan", *options)
    assert (
        f"time: no estimate: the drain of {pool} will not end on its own; to end it, run one more replica" in plan.out
    )
    assert "meanwhile both pools cost " in plan.out
    words = ("pool", "apply", *options, "--yes", "-o", "json")
    with start_process(gpukube.info, *words) as process:
        wait_for(lambda: cordoned(kube, pool).count(True) == 2)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, "stopped. To resume: gpukube" in err, "keeps working" in err) == (143, True, False), err
    (report,) = json.loads(out)["clusters"][0]["pools"]
    assert (report["outcome"], f"{pool} and {pool}b both run, and cost" in report["message"]) == ("started", True), (
        report
    )
    undone = gpukube(*way_back(report["message"]))
    assert (undone.code, "uncordoned 2 nodes" in undone.out) == (0, True), undone.out + undone.err
    assert True not in cordoned(kube, pool)
    late = gpukube(*words, "--drain-timeout", "0.02")
    assert (late.code, cordoned(kube, pool).count(True)) == (7, 2), late.out + late.err
    undone = gpukube(*way_back(late.pools()[0]["error"][0]["fix"]))
    assert (undone.code, True in cordoned(kube, pool)) == (0, False), undone.out + undone.err
    kube.close()
