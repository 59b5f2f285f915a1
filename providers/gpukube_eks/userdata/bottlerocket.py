"""Bottlerocket's settings: TOML in the node's user data configures its device plugin, MIG manager, kubelet, and kernel.

In scope: converting a sharing and settings of the node to TOML and back. Out of scope: adding them to a document of
others (`merging`), the launch template that contains them.

Sources: bottlerocket-os/bottlerocket-project-website, data/settings kubelet-device-plugins.toml (1.25 time-slicing,
1.34 MIG, 1.54 MPS), kubernetes.toml, kernel.toml, and concepts/bootstrap-commands (1.22);
bottlerocket-os/bottlerocket-core-kit#914 and docs: eks/device-management-nvidia-dra-device-plugin (1.63, the plugin's
switch); docs: eks/launch-templates (EKS merges TOML, the user's keys win; no quoted keys in table headers). By default
Bottlerocket renames shared GPUs and limits pods to one share, so both switches are always set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import LOCAL_STORAGE, MAX_PODS, MIG_PROFILE, PLUGIN, FieldPath, hugepages, kubelet, sysctl
from gpukube.core.jsontree import at, items, tree
from gpukube_eks.userdata.encoding import decode
from gpukube_eks.userdata.tomltext import parse as parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.gpu.models import GpuModel
    from gpukube.gpu.sharing import Sharing
    from gpukube_eks.userdata.tomltext import Tables

MIG_MODELS: Final = ("A100-40GB", "A100-80GB", "H100-80GB", "H200-141GB")
"""GPUs with a documented key under mig.profile; keys have one letter, so RTX PRO and GB200 have none."""

RELEASES: Final[Mapping[str, tuple[int, int]]] = {
    "time-slicing": (1, 25),
    "mig": (1, 34),
    "mps": (1, 54),
    "dra": (1, 63),
}
"""First release that supports each setting."""

KUBELET_KEYS: Final[Mapping[str, str]] = {
    "cpuManagerPolicy": "cpu-manager-policy",
    "topologyManagerPolicy": "topology-manager-policy",
    "topologyManagerScope": "topology-manager-scope",
    "memoryManagerPolicy": "memory-manager-policy",
    "podPidsLimit": "pod-pids-limit",
    "cpuCFSQuota": "cpu-cfs-quota-enforced",
    "imageGCHighThresholdPercent": "image-gc-high-threshold-percent",
    "imageGCLowThresholdPercent": "image-gc-low-threshold-percent",
    "containerLogMaxSize": "container-log-max-size",
    "containerLogMaxFiles": "container-log-max-files",
    "allowedUnsafeSysctls": "allowed-unsafe-sysctls",
}
"""Field of KubeletConfiguration -> its key under settings.kubernetes; cpuCFSQuotaPeriod has none."""
PAGE_SIZE: Final = "2Mi"
"""The size of vm.nr_hugepages, which all releases have; settings.kernel.hugepages came with 1.64."""
UNSHARED: Final = '[settings.kubelet-device-plugins.nvidia]\ndevice-sharing-strategy = "none"\n'
"""User data that turns sharing off: a new launch template version can replace user data, but not remove it."""

_PLUGIN: Final = ("settings", "kubelet-device-plugins", "nvidia")
_KUBELET: Final = ("settings", "kubernetes")
_SYSCTL: Final = ("settings", "kernel", "sysctl")
_STATIC_PAGES: Final = ("settings", "kernel", "hugepages", "static")
_COMMANDS: Final = ("settings", "bootstrap-commands")
_OWN_STORAGE: Final = (*_COMMANDS, "gpukube-ephemeral-storage")
_STORAGE: Final[Mapping[str, object]] = {
    "commands": [
        ["apiclient", "ephemeral-storage", "init"],
        [
            "apiclient",
            "ephemeral-storage",
            "bind",
            "--dirs",
            "/var/lib/containerd",
            "/var/lib/kubelet",
            "/var/log/pods",
        ],
    ],
    "mode": "always",
    "essential": True,
}
_BIND: Final = ["apiclient", "ephemeral-storage", "bind"]
_PODS: Final = "max-pods"
_PAGES: Final = "vm.nr_hugepages"
_PROFILE: Final = re.compile(r"[0-9]g\.\d+gb")


def is_profile(profile: str) -> bool:
    """Return whether Bottlerocket supports a profile: only plain ones, without +me or +gfx."""
    return _PROFILE.fullmatch(profile) is not None


def is_own_key(path: tuple[str, ...]) -> bool:
    """Return whether a key is one that gpukube writes for some pool."""
    if path[:-1] == _KUBELET:
        return path[-1] == _PODS or path[-1] in KUBELET_KEYS.values()
    return path[: len(_PLUGIN)] == _PLUGIN or path[:-1] in (_SYSCTL, _OWN_STORAGE)


def sharing_tables(sharing: Sharing, model: GpuModel) -> Tables:
    """Return the settings of a checked sharing."""
    head: dict[str, object] = {}
    found: dict[tuple[str, ...], dict[str, object]] = {}
    if sharing.mig is not None:
        head["device-partitioning-strategy"] = "mig"
        found[*_PLUGIN, "mig", "profile"] = {model.name.lower().replace("-", "."): sharing.mig.profile}
    if (slicing := sharing.slicing) is not None:
        head["device-sharing-strategy"] = slicing.mode
        values: dict[str, object] = {"replicas": slicing.replicas, "rename-by-default": slicing.rename}
        if slicing.mode == "time-slicing":
            values["fail-requests-greater-than-one"] = bool(slicing.fail_requests_greater_than_one)
        found[*_PLUGIN, slicing.mode] = values
    return {_PLUGIN: head, **found} if head else {}


def node_tables(settings: Mapping[FieldPath, object]) -> Tables:
    """Return the settings of kubelet, kernel, and local disks."""
    keys: dict[str, object] = {_PODS: settings[MAX_PODS]} if MAX_PODS in settings else {}
    for name, key in KUBELET_KEYS.items():
        if (path := kubelet(name)) in settings:
            value = settings[path]
            keys[key] = list(value) if isinstance(value, tuple) else value
    parameters = {path.key: str(value) for path, value in sorted(settings.items()) if path[0] == "sysctls"}
    if (path := hugepages(PAGE_SIZE)) in settings:
        parameters[_PAGES] = str(settings[path])
    found: dict[tuple[str, ...], Mapping[str, object]] = {_KUBELET: keys, _SYSCTL: parameters}
    if settings.get(PLUGIN) == "none":
        found[_PLUGIN] = {"enabled": False}
    if settings.get(LOCAL_STORAGE) == "ephemeral":
        found[_OWN_STORAGE] = _STORAGE
    return {path: values for path, values in found.items() if values}


def read_text(encoded: str) -> str:
    """Return the document of user data; "" if it is not text in base64."""
    try:
        return decode(encoded)[0].decode()
    except ValueError:
        return ""


def read_fields(encoded: str) -> dict[FieldPath, object]:
    """Return the comparable fields of user data; anything but Bottlerocket's TOML has none."""
    try:
        return document_fields(parse_toml(read_text(encoded)))
    except ValueError:
        return {}


def document_fields(document: Mapping[str, object]) -> dict[FieldPath, object]:
    """Return the comparable fields of a document."""
    return {**_read_sharing(tree(document, *_PLUGIN)), **_read_node(document)}


def sharing_fields(sharing: Sharing) -> dict[FieldPath, object]:
    """Return the comparable fields of a desired sharing, with the names of `read_fields`."""
    found: dict[FieldPath, object] = {MIG_PROFILE: sharing.mig.profile} if sharing.mig else {}
    if (slicing := sharing.slicing) is not None:
        values = {"replicas": slicing.replicas, "rename-by-default": slicing.rename}
        values["fail-requests-greater-than-one"] = bool(slicing.fail_requests_greater_than_one)
        found |= _slicing_fields(slicing.mode, values)
    return found


def _read_sharing(settings: Mapping[str, object]) -> dict[FieldPath, object]:
    found: dict[FieldPath, object] = {}
    if settings.get("device-partitioning-strategy") == "mig":
        profiles = tree(settings, "mig", "profile")
        found[MIG_PROFILE] = ", ".join(str(value) for _, value in sorted(profiles.items())) or "none"
    mode = str(settings.get("device-sharing-strategy", "none"))
    if mode in _FIELDS:
        found |= _slicing_fields(mode, tree(settings, mode))
    return found


def _read_node(document: Mapping[str, object]) -> dict[FieldPath, object]:
    found: dict[FieldPath, object] = {}
    if at(document, *_PLUGIN, "enabled") is False:
        found[PLUGIN] = "none"
    keys = tree(document, *_KUBELET)
    if isinstance(pods := keys.get(_PODS), int):
        found[MAX_PODS] = pods
    for name, key in KUBELET_KEYS.items():
        value = keys.get(key)
        if isinstance(value, str | int):
            # Before 1.14 percentages were text, and still may be.
            found[kubelet(name)] = int(value) if name.endswith("Percent") and str(value).isdecimal() else value
        elif isinstance(value, list):
            found[kubelet(name)] = tuple(map(str, value))
    for key, value in tree(document, *_SYSCTL).items():
        name = key if "." in key else key.replace("/", ".")
        if name == _PAGES and str(value).isdecimal():
            found[hugepages(PAGE_SIZE)] = int(str(value))
        else:
            found[sysctl(name)] = str(value)
    if isinstance(pages := at(document, *_STATIC_PAGES, PAGE_SIZE, "count"), int | str) and str(pages).isdecimal():
        found[hugepages(PAGE_SIZE)] = int(pages)
    for name in tree(document, *_COMMANDS):
        commands = items(document, *_COMMANDS, name, "commands")
        is_bound = any(isinstance(command, list) and command[:3] == _BIND for command in commands)
        if is_bound and at(document, *_COMMANDS, name, "mode") in ("always", "once"):
            found[LOCAL_STORAGE] = "ephemeral"
    return found


_FIELDS: Final = {"time-slicing": "timeSlicing", "mps": "mps"}
"""Mode -> its key under `sharing`."""
_DEFAULT_REPLICAS: Final = 2


def _slicing_fields(mode: str, values: Mapping[str, object]) -> dict[FieldPath, object]:
    """Return the fields of a mode; Bottlerocket's defaults are two replicas, renamed, at most one share."""
    above = ("sharing", _FIELDS[mode])
    found: dict[FieldPath, object] = {
        FieldPath(*above, "replicas"): values.get("replicas", _DEFAULT_REPLICAS),
        FieldPath(*above, "renameByDefault"): values.get("rename-by-default", True),
    }
    if mode == "time-slicing":
        found[FieldPath(*above, "failRequestsGreaterThanOne")] = values.get("fail-requests-greater-than-one", True)
    return found
