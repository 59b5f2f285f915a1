"""Reports what GKE rejects, before any call: names, limits, combinations.

In scope: pure checks from a target to findings, one function per subject, listed in `_CHECKS`. Out of scope: rules of
every cloud (`gpukube.spec.rules`, `gpukube.gpu`), clusters and zones (`places`), totals (`pool.counts`), shapes of
native fields (`pool.native`), GPU sharing (`sharing`), purchase options (`capacity`), upgrades (`upgrades`,
`versions`), combinations of native fields (`combinations`), machines and node software (`node_settings`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.core.marks import COPY_TAGS
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import PROTECT_LABEL
from gpukube.errors import Finding
from gpukube_gke.facts.boot_disks import boot_disk_types
from gpukube_gke.facts.labels import SYSTEM_LABELS
from gpukube_gke.pool.counts import check_counts
from gpukube_gke.pool.fields import (
    DRA_LABEL,
    LATEST,
    OPT_OUT_LABEL,
    SYSTEM_TAINTS,
    image_of,
    is_operated,
    runs_own_plugin,
)
from gpukube_gke.pool.marks import FORM
from gpukube_gke.pool.native import check_native
from gpukube_gke.pool.taints import in_class
from gpukube_gke.rules.capacity import check_reserved
from gpukube_gke.rules.combinations import check_combinations
from gpukube_gke.rules.node_settings import check_node_settings
from gpukube_gke.rules.places import check_places
from gpukube_gke.rules.sharing import check_shared
from gpukube_gke.rules.upgrades import check_upgrade
from gpukube_gke.rules.versions import check_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target
    from gpukube.errors import Where

# At most 40 characters (kubernetes-sigs/cluster-api-provider-gcp, maxNodePoolNameLength).
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_CLASS: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")  # kubernetes.io: DNS label names
IMAGES: Final = ("COS_CONTAINERD", "UBUNTU_CONTAINERD")  # docs: kubernetes-engine/how-to/gpus
_AUTOMATIC: Final = "nap-"  # docs: kubernetes-engine/how-to/node-auto-provisioning
_MIN_DISK_GIB: Final = 10  # google.container.v1 NodeConfig.disk_size_gb
_MAX_DISK_GIB: Final = 65536  # docs: compute/docs/disks/persistent-disks
_MAX_LABEL_CHARACTERS: Final = 1024  # docs: NodeConfig.labels in magic-modules
_TAG_CHARACTERS: Final = re.compile(r"[\w-]{0,63}")  # docs: compute/docs/labeling-resources
_MAX_TAGS: Final = 64  # docs: compute/docs/labeling-resources
_FEW_PODS: Final = 8


def check_target(target: Target) -> list[Finding]:
    """Return a finding for everything that GKE would reject, or accept although it cannot work."""
    found, native = [finding for check in _CHECKS for finding in check(target)], check_native(target)
    return [*found, *native, *([] if native else check_combinations(target))]


def _at(target: Target, mapping: str, key: str) -> Where:
    return target.locator.at(f"{mapping}[{json.dumps(key)}]")


def _class_name(target: Target) -> Iterator[Finding]:
    """Report a pool whose alternatives cannot be ordered, as the class gets its name."""
    if target.family and target.nodes.autoscaled and not target.rank and not _CLASS.fullmatch(target.family):
        yield Finding(
            "gke-class-name",
            target.locator.at("name"),
            f'"{target.family}" is not a name that a ComputeClass can have',
            fix="write lower-case letters, digits and dashes; names: {gke: ...} may differ",
            why="the class with the name of the pool gives GKE's autoscaler the order of the alternatives",
        )


def _name(target: Target) -> Iterator[Finding]:
    own = target.name != target.pool
    if not _NAME.fullmatch(target.name):
        yield Finding(
            "gke-name",
            target.locator.at("names.gke" if own else "name"),
            f'"{target.name}" is not a GKE pool name',
            fix="write 1 to 40 lower-case letters, digits and -, starting with a letter and not ending with -"
            + ("" if own else ", or add names: {gke: NAME}"),
        )

    elif target.name.startswith(_AUTOMATIC):
        yield Finding(
            "gke-name-automatic",
            target.locator.at("names.gke" if own else "name"),
            f'"{target.name}" looks like a pool of node auto-provisioning ({_AUTOMATIC}*)',
            fix=f"write a name that does not start with {_AUTOMATIC}",
            why="people and tools expect such pools to be created and deleted by GKE's autoscaler",
            severity="warning",
        )


def _image(target: Target) -> Iterator[Finding]:
    where = target.locator.at("image")
    if target.image and image_of(target) not in IMAGES:
        message = f'GKE has no node image "{target.image}" for GPUs'
        near = [image for image in IMAGES if image.partition("_")[0] == image_of(target).partition("_")[0]]
        yield Finding("gke-image", where, message, fix=f"write {' or '.join(near or IMAGES)}, or remove image")
    elif image_of(target) == IMAGES[1] and target.machine.is_fractional:
        message = f"{target.machine.name} runs {IMAGES[0]} only"
        yield Finding("gke-image", where, message, fix=f"write {IMAGES[0]}, or remove image")


def _disk(target: Target) -> Iterator[Finding]:
    size, kind = target.disk.size_gib, target.disk.type
    if size is not None and size < _MIN_DISK_GIB:
        message = f"disk.sizeGiB is {size}, less than GKE allows"
        fix = f"write {_MIN_DISK_GIB} or more"
        yield Finding("gke-disk-size", target.locator.at("disk.sizeGiB"), message, fix=fix)
    if size is not None and size > _MAX_DISK_GIB:
        message = f"disk.sizeGiB is {size}, more than GKE allows"
        yield Finding("gke-disk-size", target.locator.at("disk.sizeGiB"), message, fix=f"write {_MAX_DISK_GIB} or less")
    choices = boot_disk_types(target.machine.name)
    if kind is not None and kind not in choices:
        message = f'disk.type is "{kind}", which {target.machine.name} cannot boot from'
        fix = f"write {' or '.join(choices)}"
        yield Finding("gke-disk-type", target.locator.at("disk.type"), message, fix=fix)


def _spot(target: Target) -> Iterator[Finding]:
    if target.capacity.max_price is not None:
        yield Finding(
            "gke-spot-price",
            target.locator.at("capacity.maxPrice"),
            f"capacity.maxPrice is {target.capacity.max_price:g}, but GKE has no maximum price",
            fix="remove maxPrice",
            why="Spot machines of Google Cloud cost the current Spot price (google.container.v1 NodeConfig.spot)",
        )


def _labels(target: Target) -> Iterator[Finding]:
    for key in target.labels:
        prefix, _, name = key.rpartition("/")
        if key in SYSTEM_LABELS:
            yield Finding(
                "gke-label",
                _at(target, "labels", key),
                f'GKE writes the label "{key}" itself',
                fix="remove it",
                why="which of two values wins is not documented (google.container.v1 NodeConfig.labels)",
                severity="warning",
            )
        elif reason := _label_reason(key, prefix):
            fix = f"choose a prefix of your own, such as example.com/{name}"
            if key == OPT_OUT_LABEL:
                fix = "remove it, and write devicePlugin.owner: none if another plugin runs"
            where = _at(target, "labels", key)
            yield Finding("gke-label", where, f'the label "{key}" is reserved on GKE', fix=fix, why=reason)
        elif key == DRA_LABEL and target.plugin_owner not in ("dra", "none"):
            yield Finding(
                "gke-dra-label",
                _at(target, "labels", key),
                f'the label "{key}" gives the GPUs of these nodes to the DRA driver',
                fix="remove it, or write devicePlugin.owner: dra",
                why="gpukube expects nvidia.com/gpu, which such nodes do not advertise",
                severity="warning",
            )
    marks = {**target.marks, PROTECT_LABEL: "true"}
    length = sum(len(key) + len(value) for key, value in {**in_class(target).labels, **marks}.items())
    if length > _MAX_LABEL_CHARACTERS:
        yield Finding(
            "gke-labels-length",
            target.locator.at("labels"),
            f"the labels have {length} characters in total, including gpukube's own",
            fix=f"shorten them to {_MAX_LABEL_CHARACTERS} characters in total",
        )


def _label_reason(key: str, prefix: str) -> str:
    if key == OPT_OUT_LABEL:
        return "it disables GKE's device plugin independently of the spec"
    if any(prefix == domain or prefix.endswith(f".{domain}") for domain in ("kubernetes.io", "k8s.io")):
        return "kubernetes.io and k8s.io are reserved for Kubernetes (google.container.v1 NodeConfig.labels)"
    return ""


def _taints(target: Target) -> Iterator[Finding]:
    for index, taint in enumerate(target.taints):
        # The GPU taint comes first and is always valid; the spec's taints follow it.
        where = target.locator.at(f"taints[{index - 1 if target.gpu_taint else index}]")
        is_gpu = taint != GPU_TAINT and (taint.key, taint.effect) == (GPU_TAINT.key, GPU_TAINT.effect)
        if is_gpu or taint.key in SYSTEM_TAINTS:
            yield Finding(
                "gke-taint",
                where,
                f'GKE adds a taint with the key "{taint.key}" itself',
                fix="remove it",
                why="GKE refuses two taints with the same key and effect (hashicorp/terraform-provider-google#7928)",
            )


def _tags(target: Target) -> Iterator[Finding]:
    most = _MAX_TAGS - len(COPY_TAGS)
    if len(target.tags) > most:
        message = f"there are {len(target.tags)} tags, more than a machine can have"
        fix = f"keep {most} or fewer; {len(COPY_TAGS)} more are gpukube's own"
        yield Finding("gke-tag-count", target.locator.at("tags"), message, fix=fix)
    for key, value in target.tags.items():
        if FORM.is_own(key):
            message = f'the tag "{key}" is written by gpukube'
            why = "it is part of the copy of the pool's gpukube.io labels"
            yield Finding("gke-tag", _at(target, "tags", key), message, fix="choose another key", why=why)
        elif key.startswith("goog-") or not key[:1].isalpha() or not (_is_tag(key) and _is_tag(value)):
            yield Finding(
                "gke-tag",
                _at(target, "tags", key),
                f'the tag "{key}: {value}" is not a valid label of Google Cloud',
                fix="write at most 63 lower-case letters, digits, - and _, and a key that starts with a "
                "letter, not with goog-",
                why="tags become the labels of the machines (docs: compute/docs/labeling-resources)",
            )


def _is_tag(text: str) -> bool:
    """Return whether a text is a valid tag: letters of any language are allowed, but not upper case."""
    return _TAG_CHARACTERS.fullmatch(text) is not None and text == text.lower()


def _pods(target: Target) -> Iterator[Finding]:
    if target.max_pods is not None and target.max_pods < _FEW_PODS:
        yield Finding(
            "gke-max-pods",
            target.locator.at("maxPodsPerNode"),
            f"maxPodsPerNode is {target.max_pods}, and GKE's own pods use most of them",
            fix=f"write {_FEW_PODS} or more",
            why="docs: kubernetes-engine/how-to/flexible-pod-cidr",
            severity="warning",
        )


def _driver_version(target: Target) -> Iterator[Finding]:
    requested, where = target.driver_version, target.locator.at("driver.version")
    if not requested:
        return
    if target.driver_owner == "operator":
        return
    if requested not in ("default", LATEST):
        message = f'driver.version is "{requested}", which GKE does not have'
        yield Finding("gke-driver-version", where, message, fix=f"write default or {LATEST}")
    elif target.driver_owner == "none" or runs_own_plugin(target):
        message = "driver.version is set, but driver.owner or devicePlugin.owner excludes GKE's driver"
        yield Finding("gke-driver-version", where, message, fix="remove it, or write owner: auto")
    elif requested == LATEST and image_of(target) == IMAGES[1]:
        message = f"driver.version is {LATEST}, which Ubuntu nodes do not have"
        fix = "write default, or image: COS_CONTAINERD"
        yield Finding("gke-driver-version", where, message, fix=fix)


def _driver(target: Target) -> Iterator[Finding]:
    where = target.locator.at("driver.owner")
    if target.driver_owner == "operator" and image_of(target) != IMAGES[1]:
        yield Finding(
            "gke-driver-owner",
            where,
            "driver.owner is operator, but the GPU Operator has no driver for Container-Optimized OS",
            fix=f"write image: {IMAGES[1]}, or only devicePlugin.owner: operator, for Google's driver",
            why="NVIDIA/gpu-operator#1623",
        )
    elif is_operated(target) or target.driver_owner == "operator":
        return
    elif target.driver_owner == "cloud" and runs_own_plugin(target):
        yield Finding(
            "gke-driverless",
            where,
            f"driver.owner is cloud, but devicePlugin.owner {target.plugin_owner} excludes the plugin that finishes "
            "the installation",
            fix=f"write driver.owner: none and install the driver, or remove devicePlugin.owner: {target.plugin_owner}",
            why="the managed installation is an init container of GKE's plugin (NVIDIA/aicr#2047)",
        )
    elif target.driver_owner == "none" or runs_own_plugin(target):
        claimed = target.plugin_owner == "dra"
        yield Finding(
            "gke-own-driver",
            where,
            "neither GKE nor gpukube installs a driver on these nodes",
            fix="install it with Google's DaemonSet nvidia-driver-installer, or write "
            f"{'devicePlugin.' if claimed else ''}owner: auto",
            severity="hint" if claimed else "warning",  # the plan finds whether it is there
        )


_CHECKS: tuple[Callable[[Target], Iterator[Finding]], ...] = (
    _name,
    _class_name,
    check_counts,
    check_places,
    _image,
    _disk,
    check_shared,
    _spot,
    check_reserved,
    check_upgrade,
    check_versions,
    _pods,
    _labels,
    _taints,
    _tags,
    _driver,
    _driver_version,
    check_node_settings,
)
