"""Pools on any cloud: their states, their marks, their machines and what autoscalers believe of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.releases import Release
from gpukube.cluster.kube.slices import DeviceView, SliceView
from gpukube.cluster.kube.views import NodeView, PodView, placement_of
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.quotas import CloudQuota, QuotaReading, QuotaUse
from gpukube.core.values import ClusterFacts, Taint
from gpukube.doctor.check import examine
from gpukube.doctor.checks import machines, pool_marks, pool_states, scaling
from gpukube.doctor.evidence import PodFacts
from gpukube.gpu.sharing import MigCut, Sharing
from tests.unit.cluster.builders import container, daemonset
from tests.unit.doctor.live_pools import LABELS, SCALER, aks_pool, eks_pool, evidence_of, gke_pool
from tests.unit.gpukube_eks.samples import desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired
    from gpukube.doctor.check import Check, Found
    from gpukube.doctor.evidence import Evidence

CHECKS: tuple[Check, ...] = (*pool_states.CHECKS, *pool_marks.CHECKS, *machines.CHECKS, *scaling.CHECKS)
GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
NODE_NAMES = {
    "eks": "eks.amazonaws.com/nodegroup",
    "aks": "kubernetes.azure.com/agentpool",
    "gke": "cloud.google.com/gke-nodepool",
}
ONE = {"minSize": 1, "maxSize": 1, "desiredSize": 1}
RESOURCES = "k8s.io/cluster-autoscaler/node-template/resources/"


def found_in(evidence: Evidence) -> list[Found]:
    return list(examine(evidence, CHECKS).found)


def ids_in(evidence: Evidence) -> list[str]:
    return [item.check.id for item in found_in(evidence)]


def node(
    provider: str,
    devices: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str = "n1",
    taints: tuple[Taint, ...] = (GPU_TAINT,),
) -> NodeView:
    """Make a ready node of the pool t4."""
    shown = {key: str(count) for key, count in (devices if devices is not None else {"nvidia.com/gpu": 1}).items()}
    marks = {**LABELS, NODE_NAMES[provider]: "t4", **(labels or {})}
    return NodeView(name, marks, taints, shown, shown, {"Ready": "True"}, "Linux", "2026-11-01T00:00:00Z")


CPU = replace(node("eks", {}, None, "cpu", ()), labels={})


def pod(name: str = "job", on: str = "n1", **changes: object) -> PodFacts:
    view = PodView(
        name, "default", {}, on, scheduled=True, phase="Running", ready=True, unschedulable="", containers=(),
        owner_kind="Job", owner=name, devices={},
    )  # fmt: skip
    return PodFacts(replace(view, **changes))  # type: ignore[arg-type]  # test data


def seen(*nodes: NodeView, **changes: object) -> Snapshot:
    return Snapshot(nodes=nodes, **changes)  # type: ignore[arg-type]  # test data


def driver(provider: str, value: str) -> Snapshot:
    """A cluster with one node of the pool, labeled so, and the driver container of an operator."""
    label = "nvidia.com/gpu.deploy.driver"
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    placement = placement_of({"nodeSelector": {label: "true"}, "tolerations": tolerations})
    app = {"app": "nvidia-driver-daemonset"}
    made = daemonset("nvidia-driver-daemonset", "gpu-operator", pod_labels=app, placement=placement)
    return seen(CPU, node(provider, {} if provider == "aks" else None, {label: value}), daemonsets=(made,))


def toolkit(provider: str, version: str, **env: str) -> Evidence:
    """A cluster with one node of the pool, and the container toolkit of an operator that runs everywhere."""
    app = {"app": "nvidia-container-toolkit-daemonset"}
    placement = placement_of({"tolerations": [{"operator": "Exists"}]})
    made = daemonset("nvidia-container-toolkit-daemonset", "gpu-operator", pod_labels=app, placement=placement)
    variables = [{"name": name, "value": value} for name, value in env.items()]
    pod = {"containers": [{"name": "toolkit", "env": variables}]}
    return evidence_of(
        provider,
        gke_pool({"pool": {"version": version, "initialNodeCount": 1}}),
        seen=seen(CPU, node(provider), daemonsets=(made,)),
        daemonsets={(made.namespace, made.name): {"spec": {"template": {"spec": pod}}}},
    )


def make_release(name: str, chart: str, namespace: str = "default") -> Release:
    return Release(name, namespace, chart, "1", 1, "deployed", {}, "")


def desired(**changes: object) -> Desired:
    """The pool t4 as a spec declares it."""
    return desired_of(eks_target("g4dn.xlarge", name="t4", pool="t4", **changes))


QUOTA = {"issues": [{"code": "AsgInstanceLaunchFailures", "message": "VcpuLimitExceeded: more than your limit of 0"}]}
STOCK = {"issues": [{"code": "AsgInstanceLaunchFailures", "message": "InsufficientInstanceCapacity in us-east-1a"}]}
ROLE = {"issues": [{"code": "IamNodeRoleNotFound", "message": "no such role"}]}
AKS_QUOTA = {
    "provisioningError": {
        "code": "QuotaExceeded",
        "message": "Operation could not be completed as it results in exceeding approved NCASv3_T4 Family Cores quota. "
        "Current Limit: 0, Current Usage: 0, Additional Required: 4, (Minimum) New Limit Required: 4.",
    }
}
STOCKOUT = [{"code": "GCE_STOCKOUT", "message": "Instance creation failed: stockout"}]
NO_FACTS = ClusterFacts("here", "1.34.2", ready=False, status="Stopped")
EKS, TEN = eks_pool(scalingConfig=ONE), {"nvidia.com/mig-1g.5gb": 56}
CUT = eks_pool(instanceTypes=["p4d.24xlarge"])
MIXED = Sharing(MigCut("1g.5gb", "mixed"))
OTHERS = {"gpukube.io/owner": "x", "gpukube.io/pool": "y"}
OLD = {**LABELS, "gpukube.io/pool": "old"}

DRA_DRIVER = daemonset(
    "dra-driver-nvidia-gpu-kubelet-plugin",
    "dra",
    placement=placement_of({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}),
    containers=(container("dra-driver-nvidia-gpu:v0.4.1", "bash", name="gpus"),),
)
GPU = {"gpu.nvidia.com/type": "gpu", "gpu.nvidia.com/uuid": "GPU-1"}
OLD_KUBELET = replace(node("eks", {}), kubelet="v1.33.5-eks-3025e55")

HEALTHY: dict[str, Evidence] = {
    "no pools": evidence_of("eks"),
    "an empty group": evidence_of("eks", eks_pool()),
    "a group without GPUs that nothing scales": evidence_of(
        "eks", eks_pool(instanceTypes=["m6i.large"], labels={}, taints=[]), scaled=False
    ),
    "a group and its node": evidence_of("eks", EKS, seen=seen(CPU, node("eks"))),
    "an AKS pool": evidence_of("aks", aks_pool(count=1), seen=seen(CPU, node("aks"))),
    "a GKE pool": evidence_of("gke", gke_pool({"pool": {"initialNodeCount": 1}}), seen=seen(CPU, node("gke"))),
    "a pool as declared": evidence_of("eks", eks_pool(), desired=(desired(),)),
    "a pool of other owners": evidence_of("eks", eks_pool(labels=OTHERS, nodegroupName="y"), desired=(desired(),)),
    "nodes of which the cloud tells no version": evidence_of("eks", eks_pool(version=None)),
    "a toolkit on nodes of which the cloud tells no version": toolkit("gke", ""),
    "nodes three minors old": evidence_of("eks", eks_pool(version="1.31")),
    "GPUs that can be cut": evidence_of(
        "eks", eks_pool(instanceTypes=["p4d.24xlarge"], labels={"nvidia.com/mig.config": "all-1g.5gb"})
    ),
    "GPUs that are not to be cut": evidence_of("eks", eks_pool(labels={"nvidia.com/mig.config": "all-disabled"})),
    "a driver that the operator finds there": evidence_of(
        "eks", EKS, seen=driver("eks", "pre-installed")
    ),
    "no driver by AKS, and the operator's": evidence_of(
        "aks",
        aks_pool(gpuProfile={"driver": "None"}, count=1),
        seen=driver("aks", "true"),
    ),
    "no driver by AKS, and GPUs all the same": evidence_of(
        "aks", aks_pool(gpuProfile={"driver": "None"}, count=1), seen=seen(CPU, node("aks"))
    ),
    "a toolkit that reads the file": toolkit("gke", "1.33.4-gke.1", RUNTIME_CONFIG_SOURCE="file"),
    "a toolkit on old nodes": toolkit("gke", "1.32.9-gke.1"),
    "a tagged group from zero": evidence_of(
        "eks", eks_pool(instanceTypes=["p4d.24xlarge"], tags={f"{RESOURCES}nvidia.com/mig-1g.5gb": "56"}),
        seen=seen(CPU, node("eks", TEN)),
    ),
    "a group from zero without GPUs": evidence_of("eks", eks_pool(instanceTypes=["m5.large"]), seen=seen(CPU)),
    "a group from zero whose machine is not known": evidence_of(
        "eks", eks_pool(instanceTypes=["x9.large"]), seen=seen(CPU, node("eks"))
    ),
    "a group from zero with whole GPUs": evidence_of("eks", eks_pool(), seen=seen(CPU, node("eks"))),
    "slices of a group that is never empty": evidence_of(
        "eks", eks_pool(instanceTypes=["p4d.24xlarge"], scalingConfig={"minSize": 1, "maxSize": 3, "desiredSize": 1}),
        seen=seen(CPU, node("eks", TEN)),
    ),
    "GKE, which knows its slices": evidence_of(
        "gke",
        gke_pool({"pool": {"autoscaling": {"enabled": True, "maxNodeCount": 3}}}),
        seen=seen(CPU, node("gke", {"nvidia.com/gpu": 4})),
    ),
    "a new DRA driver": evidence_of("eks", seen=seen(device_classes=("gpu.nvidia.com",)), version="1.34.2"),
    "tainted nodes on which the cluster's own pods run": evidence_of(
        "eks", EKS, seen=seen(node("eks")), pods=(pod("coredns", namespace="kube-system", owner_kind="ReplicaSet"),)
    ),
    "a System pool of AKS": evidence_of(
        "aks", seen=seen(replace(CPU, taints=(Taint("CriticalAddonsOnly", "true", "NoSchedule"),)), node("aks"))
    ),
}  # fmt: skip

NEED = QuotaUse(
    CloudQuota("eks", "L-DB2E81BA", "G", "vCPUs", "111122223333/us-east-1", "raise to {value}", "docs"),
    8, ("train/t4",), QuotaReading(limit=4, used=4),
)  # fmt: skip

COPY = {
    "gpukube.io/owner": "ml-platform",
    "gpukube.io/pool": "t4",
    "gpukube.io/place": "111122223333/us-east-1/train/t4",
}
ILL: dict[str, tuple[str, Evidence]] = {
    "a stopped cluster": ("cluster-not-ready", evidence_of("aks", facts=NO_FACTS)),
    "a quota of AWS": ("pool-quota", evidence_of("eks", eks_pool(status="CREATE_FAILED", health=QUOTA))),
    "a quota of Azure": ("pool-quota", evidence_of("aks", aks_pool(provisioningState="Failed", status=AKS_QUOTA))),
    "a quota that is too low": ("cloud-quota", replace(evidence_of("eks"), limits=(NEED,))),
    "a quota that may not be read": (
        "cloud-quota",
        replace(evidence_of("eks"), limits=(replace(NEED, reading=QuotaReading(unknown="not allowed")),)),
    ),
    "no machine of AWS": ("pool-capacity", evidence_of("eks", eks_pool(status="DEGRADED", health=STOCK))),
    "no machine of Google": (
        "pool-capacity",
        evidence_of("gke", gke_pool({"pool": {"status": "ERROR", "conditions": STOCKOUT}})),
    ),
    "a creation that failed without a word": ("pool-ill", evidence_of("eks", eks_pool(status="CREATE_FAILED"))),
    "an issue of a group that is active": ("pool-ill", evidence_of("eks", eks_pool(health=ROLE))),
    "a role that is gone": ("pool-ill", evidence_of("eks", eks_pool(status="DEGRADED", health=ROLE))),
    "a canceled operation": ("pool-ill", evidence_of("aks", aks_pool(provisioningState="Canceled"))),
    "an update": ("pool-busy", evidence_of("eks", eks_pool(status="UPDATING"))),
    "a deletion": ("pool-deleting", evidence_of("gke", gke_pool({"pool": {"status": "STOPPING"}}))),
    "groups that nothing scales": ("nothing-scales", evidence_of("eks", eks_pool(), scaled=False)),
    "an autoscaler that is stopped": (
        "nothing-scales",
        evidence_of("eks", eks_pool(), scaled=False, seen=seen(deployments=(replace(SCALER, replicas=0),))),
    ),
    "a machine that did not join": ("pool-nodes-missing", evidence_of("eks", EKS)),
    "two with one mark": ("marks-twice", evidence_of("eks", eks_pool(), eks_pool(nodegroupName="t4b"))),
    "an owner without a pool": ("marks-half", evidence_of("eks", eks_pool(labels={"gpukube.io/owner": "x"}))),
    "a pool without an owner": ("marks-half", evidence_of("eks", eks_pool(labels={"gpukube.io/pool": "x"}))),
    "a protection by yes": (
        "protection-mark",
        evidence_of("eks", eks_pool(labels={**LABELS, "gpukube.io/protect": "yes"})),
    ),
    "a protection that is not there": (
        "protection-off",
        evidence_of("eks", eks_pool(), desired=(desired(protect=True),)),
    ),
    "a name that somebody has": ("name-taken", evidence_of("eks", eks_pool(labels={}), desired=(desired(),))),
    "labels that somebody replaced": (
        "marks-lost",
        evidence_of("eks", eks_pool(labels={}, tags=COPY), desired=(desired(),)),
    ),
    "a pool that is not in the spec": (
        "pool-undeclared",
        evidence_of("eks", eks_pool(labels=OLD, nodegroupName="old"), desired=(desired(),)),
    ),
    "a retired machine": ("machine-retired", evidence_of("aks", aks_pool(vmSize="Standard_NC6"))),
    "a machine of AMD": ("machine-retired", evidence_of("eks", eks_pool(instanceTypes=["g4ad.xlarge"]))),
    "T4 with a label to be cut": (
        "machine-without-mig",
        evidence_of("eks", eks_pool(labels={**LABELS, "nvidia.com/mig.config": "all-1g.5gb"})),
    ),
    "nodes four minors old": ("version-skew", evidence_of("aks", aks_pool(currentOrchestratorVersion="1.30.9"))),
    "nodes that are newer": ("version-skew", evidence_of("gke", gke_pool({"pool": {"version": "1.35.0-gke.1"}}))),
    "DRA on an old cluster": (
        "dra-version",
        evidence_of("eks", seen=seen(device_classes=("gpu.nvidia.com",)), version="1.33.4"),
    ),
    "DRA on a node whose kubelet is too old": (
        "dra-version",
        evidence_of("eks", seen=seen(CPU, OLD_KUBELET, daemonsets=(DRA_DRIVER,)), version="1.34.3"),
    ),
    "nobody's driver": ("driver-of-nobody", evidence_of("aks", aks_pool(gpuProfile={"driver": "None"}))),
    "nobody's driver, and nodes": (
        "driver-of-nobody",
        evidence_of("aks", aks_pool(gpuProfile={"driver": "None"}, count=1), seen=seen(CPU, node("aks", {}))),
    ),
    "two drivers": (
        "driver-twice",
        evidence_of("eks", EKS, seen=driver("eks", "true")),
    ),
    "a toolkit that rewrites containerd's configuration": ("toolkit-config-source", toolkit("gke", "1.33.4-gke.1")),
    "slices without tags": ("autoscaler-misled", evidence_of("eks", CUT, seen=seen(CPU, node("eks", TEN)))),
    "slices with an old tag": (
        "autoscaler-misled",
        evidence_of(
            "eks", eks_pool(instanceTypes=["p4d.24xlarge"], tags={f"{RESOURCES}nvidia.com/mig-1g.5gb": "24"}),
            seen=seen(CPU, node("eks", TEN)),
        ),
    ),
    "a share of a GPU without a tag": (
        "autoscaler-misled",
        evidence_of("eks", eks_pool(instanceTypes=["g6f.large"]), seen=seen(CPU, node("eks"))),
    ),
    "shares on AKS": (
        "autoscaler-misled",
        evidence_of(
            "aks", aks_pool(enableAutoScaling=True, minCount=0, maxCount=5, count=1),
            seen=seen(CPU, node("aks", {"nvidia.com/gpu": 4})),
        ),
    ),
    "slices that the spec promises, before there is a node": (
        "autoscaler-misled",
        evidence_of(
            "eks",
            CUT,
            desired=(desired_of(eks_target("p4d.24xlarge", name="t4", pool="t4", sharing=MIXED)),),
        ),
    ),
    "nodes without the name that the autoscaler knows": (
        "autoscaler-unready",
        evidence_of(
            "aks", aks_pool(enableAutoScaling=True, minCount=1, maxCount=5, count=1),
            seen=seen(CPU, node("aks", TEN, {"kubernetes.azure.com/accelerator": "nvidia"})),
        ),
    ),
    "nothing but tainted nodes": ("no-room-for-system-pods", evidence_of("eks", EKS, seen=seen(node("eks")))),
}  # fmt: skip


def test_driver_when_google_has_an_installer_then_it_is_the_fix_unless_devices_are_published() -> None:
    disabled = {"gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"}}
    pool = gke_pool({**disabled, "pool": {"initialNodeCount": 1}})
    bare = evidence_of("gke", pool, seen=seen(CPU, node("gke", {})))
    (found,) = [item for item in found_in(bare) if item.check.id == "driver-of-nobody"]
    assert found.finding.fix.startswith(
        "kubectl apply --filename https://raw.githubusercontent.com/GoogleCloudPlatform/"
    )
    there = SliceView("s", "gpu.nvidia.com", "n1", "n1", devices=(DeviceView("gpu-0", GPU, {}),))
    served = evidence_of("gke", pool, seen=seen(CPU, node("gke", {}), slices=(there,)))
    assert "driver-of-nobody" not in ids_in(served)


@pytest.mark.parametrize("case", HEALTHY)
def test_cluster_when_healthy_then_nothing_is_found(case: str) -> None:
    assert ids_in(HEALTHY[case]) == []


@pytest.mark.parametrize("case", ILL)
def test_cluster_when_ill_then_exactly_that_is_found(case: str) -> None:
    check, evidence = ILL[case]
    (found,) = found_in(evidence)
    assert found.check.id == check
    assert found.finding.fix
    assert found.finding.why
    assert not found.finding.seen.endswith(".")


def test_checks_when_listed_then_each_has_a_case() -> None:
    assert {check.id for check in CHECKS} == {check for check, _ in ILL.values()}, "each check needs a case in ILL"


def test_quota_when_azure_says_figures_then_the_remedy_has_them() -> None:
    (found,) = found_in(ILL["a quota of Azure"][1])
    assert "from 0 to 4" in found.finding.fix
    assert found.finding.fix.endswith("gpukube pool create -f SPEC")


def test_capacity_when_the_pool_is_of_nobody_then_the_clouds_own_command_deletes_it() -> None:
    evidence = evidence_of("gke", gke_pool({"pool": {"status": "ERROR", "conditions": STOCKOUT}}, labels={}))
    (found,) = found_in(evidence)
    assert "gcloud container node-pools delete t4 --cluster train" in found.finding.fix


def test_deletion_when_pods_hold_it_up_then_they_are_named() -> None:
    pool = eks_pool(status="DELETING")
    pods = (pod("train-0"), pod("agent", owner_kind="DaemonSet"), pod("done", phase="Succeeded"), pod("far", on="cpu"))
    (found,) = found_in(evidence_of("eks", pool, seen=seen(CPU, node("eks")), pods=pods))
    assert found.finding.evidence == ("pod default/train-0 on n1",)


def test_deletion_when_many_pods_hold_it_up_then_some_are_named() -> None:
    pods = tuple(pod(f"train-{number}") for number in range(7))
    (found,) = found_in(evidence_of("eks", eks_pool(status="DELETING"), seen=seen(CPU, node("eks")), pods=pods))
    assert found.finding.evidence[-1] == "and 2 more pods"
    assert "7 pods left" in found.finding.seen


def test_nodes_when_some_are_there_then_a_warning() -> None:
    pool = eks_pool(scalingConfig={"minSize": 2, "maxSize": 2, "desiredSize": 2})
    (found,) = found_in(evidence_of("eks", pool, seen=seen(CPU, node("eks"))))
    assert (found.check.id, found.finding.severity) == ("pool-nodes-missing", "warning")


def test_nodes_when_none_is_there_yet_of_an_autoscaled_pool_then_a_warning() -> None:
    pool = eks_pool(scalingConfig={"minSize": 0, "maxSize": 3, "desiredSize": 1})
    (found,) = found_in(evidence_of("eks", pool, seen=seen(CPU)))
    assert (found.check.id, found.finding.severity) == ("pool-nodes-missing", "warning")


def test_pool_when_busy_then_ours_is_waited_for_and_others_are_shown() -> None:
    (ours,) = found_in(evidence_of("eks", eks_pool(status="UPDATING")))
    (theirs,) = found_in(evidence_of("eks", eks_pool(status="UPDATING", labels={})))
    assert ours.finding.fix == "wait for it: gpukube pool wait t4 -f SPEC"
    assert theirs.finding.fix.startswith("wait for it: aws eks describe-nodegroup --cluster-name train")


def test_name_when_taken_by_nobody_then_adopting_is_offered_and_else_not() -> None:
    (nobody,) = found_in(ILL["a name that somebody has"][1])
    (somebody,) = found_in(evidence_of("eks", eks_pool(labels=OTHERS), desired=(desired(),)))
    assert ("--adopt" in nobody.finding.fix, "--adopt" in somebody.finding.fix) == (True, False)


def test_pool_when_undeclared_and_protected_then_the_protection_goes_first() -> None:
    labels = {**OLD, "gpukube.io/protect": "true"}
    (found,) = found_in(evidence_of("eks", eks_pool(labels=labels, nodegroupName="old"), desired=(desired(),)))
    assert "remove its protection" in found.finding.fix


def test_drivers_when_two_then_the_release_is_told_what_the_cloud_brings() -> None:
    (found,) = found_in(ILL["two drivers"][1])
    assert "helm upgrade gpu-operator gpu-operator --repo https://helm.ngc.nvidia.com/nvidia" in found.finding.fix
    assert "--set driver.enabled=false --set toolkit.enabled=false" in found.finding.fix
    assert found.finding.evidence == ("DaemonSet gpu-operator/nvidia-driver-daemonset, 0 pods",)


def test_drivers_when_the_operators_release_is_known_then_it_is_named() -> None:
    others = make_release(name="nvdp", chart="nvidia-device-plugin")
    operator = make_release(name="gpus", namespace="nvidia", chart="gpu-operator")
    (found,) = found_in(replace(ILL["two drivers"][1], releases=(others, operator)))
    assert "helm upgrade gpus gpu-operator" in found.finding.fix
    assert "--namespace nvidia --reuse-values" in found.finding.fix


def test_illness_when_google_tells_it_in_the_old_way_then_it_is_quoted() -> None:
    pool = gke_pool({"pool": {"status": "ERROR", "statusMessage": "Google Compute Engine: no more of these"}})
    (found,) = found_in(evidence_of("gke", pool))
    assert found.finding.evidence[0] == "Google says: Google Compute Engine: no more of these"


def test_autoscaler_when_it_knows_the_name_but_not_the_number_then_a_warning_and_the_command() -> None:
    (aks,) = found_in(ILL["shares on AKS"][1])
    assert aks.finding.severity == "warning"
    assert "--update-cluster-autoscaler --min-count 1 --max-count 5" in aks.finding.fix
    (eks,) = found_in(ILL["slices without tags"][1])
    assert eks.finding.severity == "error"
    assert f"--tags {RESOURCES}nvidia.com/mig-1g.5gb=56" in eks.finding.fix
    assert "aws eks tag-resource --resource-arn arn:aws:eks" in eks.finding.fix


def test_system_pods_when_pending_then_an_error_that_names_them() -> None:
    waiting = pod("coredns", "", scheduled=False, phase="Pending", namespace="kube-system", owner_kind="ReplicaSet")
    (found,) = found_in(evidence_of("eks", EKS, seen=seen(node("eks")), pods=(waiting,)))
    assert (found.finding.severity, found.finding.evidence) == ("error", ("pod kube-system/coredns is pending",))
