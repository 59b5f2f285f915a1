"""Checks live EKS node groups for known GPU problems.

In scope: checks that need only EKS's data about its groups. Out of scope: calls, and checks inside the cluster
(gpukube.doctor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.cloud_check import Autoscaler, CloudChecks, Diagnosis
from gpukube.core.faults import fault
from gpukube.core.fields import DISK_SIZE, LEAST, MOST
from gpukube.core.jsontree import at, strings
from gpukube.core.live import live_machine
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL, PRESENT_LABEL
from gpukube.gpu.catalog import find_machine
from gpukube_eks.facts.images import family_of, is_bottlerocket
from gpukube_eks.facts.meanings import issue_error
from gpukube_eks.pool.fields import RESOURCE_FIELD, RESOURCE_TAG
from gpukube_eks.pool.observe import health_of
from gpukube_eks.pool.template import template_name
from gpukube_eks.pool.translate import ACCELERATOR_LABEL, LEFTOVER, accelerator_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.cloud_check import CloudView
    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.errors import GpukubeError

_GPU: Final = "nvidia.com/gpu"
_SMALLEST_DISK_GIB: Final = 50
"""Disk size in GiB below which the doctor warns: EKS's default of 20 fits one or two GPU images
(eksctl-io/eksctl#780)."""
_SCARCE: Final = 8
"""GPUs per machine from which a second machine is rarely available."""
_PLUGIN_LABELS: Final = (ADVERTISER_LABEL, CONFIG_LABEL, PRESENT_LABEL, MIG_CONFIG_LABEL)

_CHECKS: Final = CloudChecks()


def _problem_of(view: CloudView, pool: Observed) -> GpukubeError | None:
    """Return health issues, and states that no update ends; a template without its group has its own check."""
    issues = health_of(pool.native)
    bad = pool.status in ("CREATE_FAILED", "DELETE_FAILED", "DEGRADED")
    return issue_error(issues, view.name_of(pool)) if issues or bad else None


def _expected(pool: Observed) -> Mapping[str, int] | None:
    """Return the GPUs of the first instance type; tags override them (cluster-autoscaler 1.28, aws_manager.go)."""
    machine = live_machine("eks", pool)
    if machine is None:
        return None
    tagged = {
        path.key.removeprefix(RESOURCE_TAG): int(str(value))
        for path, value in pool.fields.items()
        if (path.is_below(*RESOURCE_FIELD) or (path.is_below("tags") and path.key.startswith(RESOURCE_TAG)))
        and str(value).isdigit()
    }
    return {_GPU: 0 if machine.is_fractional else machine.devices, **tagged}


def _fix_command(view: CloudView, pool: Observed, devices: Mapping[str, int]) -> str:
    arn = str(pool.native.get("nodegroupArn") or f"$(aws eks describe-nodegroup {_names(view, pool)} "
              "--query nodegroup.nodegroupArn --output text)")  # fmt: skip
    tags = ",".join(f"{RESOURCE_TAG}{name}={count}" for name, count in sorted(devices.items()))
    return f"aws eks tag-resource --resource-arn {arn} --tags {tags} --region {view.cluster.identity['region']}"


def _show(view: CloudView, pool: Observed) -> str:
    return f"aws eks describe-nodegroup {_names(view, pool)}"


def _remove(view: CloudView, pool: Observed) -> str:
    return f"aws eks delete-nodegroup {_names(view, pool)}"


def _upgrade(view: CloudView, pool: Observed) -> str:
    return f"aws eks update-nodegroup-version {_names(view, pool)}"


def _node_version(pool: Observed) -> str:
    return str(pool.native.get("version") or "")


def _names(view: CloudView, pool: Observed) -> str:
    cluster = view.cluster
    return f"--cluster-name {cluster.name} --nodegroup-name {pool.name} --region {cluster.identity['region']}"


def _ami(pool: Observed) -> str:
    return str(pool.native.get("amiType") or "")


@_CHECKS.each_pool(
    "eks-image-without-driver",
    title="GPU node groups whose image has no NVIDIA driver",
    consequence="the device plugin finds no driver, and the nodes advertise no GPU",
    link="https://github.com/awslabs/amazon-eks-ami/issues/1817",
)
def _image_without_driver(view: CloudView, pool: Observed) -> Fault | None:
    ami, machine = _ami(pool), live_machine("eks", pool)
    if machine is None or not ami or ami == "CUSTOM" or "NVIDIA" in ami or ami == "AL2_x86_64_GPU":
        return None
    arch = "ARM_64" if machine.arch == "arm64" else "x86_64"
    return fault(
        view.name_of(pool),
        f"amiType {ami} has no NVIDIA driver, but {machine.name} has {machine.devices} x {machine.model}",
        f"create a node group with --ami-type AL2023_{arch}_NVIDIA, then {_remove(view, pool)}",
        evidence=(f"amiType={ami}", f"instanceTypes={pool.instance_type}"),
    )


@_CHECKS.each_pool(
    "eks-image-retired",
    title="GPU node groups on Amazon Linux 2",
    consequence="no fixes, no newer driver, and no update to Kubernetes 1.33 or newer",
    link="https://docs.aws.amazon.com/eks/latest/userguide/eks-ami-deprecation-faqs.html",
)
def _image_retired(view: CloudView, pool: Observed) -> Fault | None:
    ami = _ami(pool)
    if ami != "AL2_x86_64_GPU":
        return None
    return fault(
        view.name_of(pool),
        f"amiType {ami} is Amazon Linux 2, which has had no new images since 2025-11-26",
        f"create a node group with --ami-type AL2023_x86_64_NVIDIA, then {_remove(view, pool)}",
        evidence=(f"amiType={ami}", f"releaseVersion={pool.native.get('releaseVersion', '?')}"),
    )


@_CHECKS.each_pool(
    "eks-g7-driver",
    title="G7 machines on an image whose driver is too old",
    consequence="the driver does not support the GPU, and the nodes advertise none",
    link="https://github.com/awslabs/amazon-eks-ami/blob/main/doc/usage/g7-ami.md",
)
def _g7_driver(view: CloudView, pool: Observed) -> Fault | None:
    if family_of(pool.instance_type) != "g7" or _ami(pool) in ("", "CUSTOM"):
        return None
    return fault(
        view.name_of(pool),
        f"{pool.instance_type} needs driver 595 or newer, but {_ami(pool)} ships 580",
        f"create a node group from a custom image with driver 595, then {_remove(view, pool)}",
        evidence=(f"amiType={_ami(pool)}", f"instanceTypes={pool.instance_type}"),
    )


@_CHECKS.each_pool(
    "eks-bottlerocket-labels",
    title="labels for a plugin or MIG manager on Bottlerocket groups",
    consequence="a second device plugin runs next to Bottlerocket's own, and both register nvidia.com/gpu",
    link="https://github.com/bottlerocket-os/bottlerocket/issues/4309",
)
def _bottlerocket_labels(view: CloudView, pool: Observed) -> Fault | None:
    found = [key for key in _PLUGIN_LABELS if pool.labels.get(key)]
    if not is_bottlerocket(_ami(pool)) or not found:
        return None
    plugin = [key for key in found if key in (ADVERTISER_LABEL, PRESENT_LABEL)]
    return fault(
        view.name_of(pool),
        f"nodes of {_ami(pool)} run their own plugin and MIG manager, but the group has the labels {', '.join(found)}",
        f"aws eks update-nodegroup-config {_names(view, pool)} --labels removeLabels={','.join(found)}",
        evidence=tuple(f"label {key}={pool.labels[key]}" for key in found),
        severity="error" if plugin else "warning",
        why="" if plugin else "the labels have no effect: Bottlerocket configures sharing and MIG in its settings",
    )


@_CHECKS.each_pool(
    "eks-accelerator-label",
    title="autoscaled GPU groups without the autoscaler's accelerator label",
    consequence="until the plugin registers, the autoscaler treats a new node as one without GPUs and starts another",
    link="https://github.com/kubernetes/autoscaler/issues/1949",
    severity="warning",
)
def _accelerator_label(view: CloudView, pool: Observed) -> Fault | None:
    machine = live_machine("eks", pool)
    claimed = pool.labels.get(ADVERTISER_LABEL) == "dra"  # without nvidia.com/gpu the label makes nodes unready
    if machine is None or claimed or MOST not in pool.fields or pool.labels.get(ACCELERATOR_LABEL):
        return None
    label = f"{ACCELERATOR_LABEL}={accelerator_name(machine)}"
    return fault(
        view.name_of(pool),
        f"an autoscaled GPU group without the label {ACCELERATOR_LABEL}",
        f"aws eks update-nodegroup-config {_names(view, pool)} --labels 'addOrUpdateLabels={{{label}}}'",
        evidence=(_bounds(pool),),
    )


@_CHECKS.each_pool(
    "eks-autoscaler-taint",
    title="taints that the autoscaler ignores while a group is empty",
    consequence="pods that do not tolerate the taint start nodes on which they cannot run",
    link="https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/aws_wrapper.go",
    severity="warning",
)
def _taint_without_value(view: CloudView, pool: Observed) -> Fault | None:
    bare = [taint for taint in pool.effective_taints if not taint.value]
    if not bare or live_machine("eks", pool) is None or pool.fields.get(LEAST) != 0:
        return None
    names = ", ".join(f"{taint.key}:{taint.effect}" for taint in bare)
    effect = {"NoSchedule": "NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}.get(bare[0].effect, "PREFER_NO_SCHEDULE")
    new, old = f"key={bare[0].key},value=present,effect={effect}", f"key={bare[0].key},effect={effect}"
    return fault(
        view.name_of(pool),
        f"the autoscaler ignores taints without a value: {names}",
        f"aws eks update-nodegroup-config {_names(view, pool)} --taints 'addOrUpdateTaints=[{{{new}}}],"
        f"removeTaints=[{{{old}}}]'",
        evidence=(_bounds(pool),),
    )


@_CHECKS.each_pool(
    "eks-unlike-types",
    title="instance types with different GPUs in one group",
    consequence="the number of devices differs between nodes, and the autoscaler uses only the first type",
    link="https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/aws/README.md",
    severity="warning",
)
def _unlike_types(view: CloudView, pool: Observed) -> Fault | None:
    names = strings(pool.native, "instanceTypes")
    machines = [find_machine("eks", name) for name in names]
    kinds = sorted({f"{m.devices} x {m.model}" if m else "no known GPU" for m in machines})
    if len(kinds) < 2 or not any(machines):  # noqa: PLR2004 - two kinds are one too many
        return None
    return fault(
        view.name_of(pool),
        f"its instance types have different GPUs: {'; '.join(kinds)}",
        f"create a node group for each kind, then {_remove(view, pool)}",
        evidence=(f"instanceTypes={','.join(names)}",),
    )


@_CHECKS.each_pool(
    "eks-template-leftover",
    title="gpukube's launch templates without their node group",
    consequence="a creation or deletion did not finish; the template costs "
    "nothing but counts toward the account's limit",
    link="https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html",
    severity="warning",
)
def _leftover(view: CloudView, pool: Observed) -> Fault | None:
    if pool.status != LEFTOVER:
        return None
    template = template_name(view.cluster.name, pool.name)
    return fault(
        view.name_of(pool),
        f"the launch template {template} exists without its node group",
        f"to continue: gpukube pool create -f SPEC; to remove it: aws ec2 delete-launch-template "
        f"--launch-template-name {template} --region {view.cluster.identity['region']}",
        evidence=(f"tag gpukube.io/owner={pool.owner}", f"tag gpukube.io/nodegroup={pool.name}"),
    )


@_CHECKS.each_pool(
    "eks-small-disk",
    title="GPU groups with a small disk",
    consequence="image pulls fill the disk, and the kubelet evicts pods",
    link="https://github.com/eksctl-io/eksctl/issues/780",
    severity="warning",
)
def _small_disk(view: CloudView, pool: Observed) -> Fault | None:
    size = pool.fields.get(DISK_SIZE)
    if live_machine("eks", pool) is None or not isinstance(size, int) or size >= _SMALLEST_DISK_GIB:
        return None
    return fault(
        view.name_of(pool),
        f"the nodes' disk is {size} GiB",
        f"create a node group with --disk-size 100, then {_remove(view, pool)}",
        evidence=(f"diskSize={size}",),
    )


@_CHECKS.each_pool(
    "eks-surge",
    title="scarce machines in a group whose updates need extra ones",
    consequence="an update waits for additional GPUs that the region does not have, and fails",
    link="https://github.com/aws/containers-roadmap/issues/1866",
    severity="warning",
)
def _surge(view: CloudView, pool: Observed) -> Fault | None:
    machine, strategy = live_machine("eks", pool), at(pool.native, "updateConfig", "updateStrategy")
    if machine is None or machine.gpus < _SCARCE or strategy != "DEFAULT":
        return None
    return fault(
        view.name_of(pool),
        f"updates start new {machine.name} before they stop old ones (updateStrategy DEFAULT)",
        f"aws eks update-nodegroup-config {_names(view, pool)} --update-config maxUnavailable=1,updateStrategy=MINIMAL",
        evidence=(f"{machine.devices} x {machine.model} per node",),
    )


def _bounds(pool: Observed) -> str:
    return f"minSize={pool.fields.get(LEAST)}, maxSize={pool.fields.get(MOST)}"


DIAGNOSIS: Final = Diagnosis(
    checks=_CHECKS,
    problem_of=_problem_of,
    autoscaler=Autoscaler(_expected, _fix_command, ACCELERATOR_LABEL),
    show=_show,
    remove=_remove,
    upgrade=_upgrade,
    node_version=_node_version,
    brought=("driver", "toolkit"),
    toolkit_from=None,
    operator_values=("driver.enabled=false", "toolkit.enabled=false"),
)
"""All checks. GPU Operator with the images' own driver and toolkit: docs: eks/ml-eks-optimized-ami."""
