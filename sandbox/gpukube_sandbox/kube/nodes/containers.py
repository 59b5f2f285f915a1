"""Reads a pod's containers: their program, environment, and mounted files.

In scope: reading these from a pod's spec. Out of scope: running the programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.kube.store.objects import spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.store.objects import JsonObject

Role = Literal[
    "plain",
    "config-manager",
    "plugin",
    "gfd",
    "mps",
    "nfd-worker",
    "nfd-master",
    "nfd-prune",
    "nvidia-smi",
    "gke-plugin",
    "gpu-operator",
    "kuberay-operator",
    "mig-manager",
    "driver-manager",
    "driver",
    "google-installer",
    "toolkit",
    "driver-validation",
    "toolkit-validation",
    "efa-plugin",
    "rdma-shared-plugin",
    "sriov-plugin",
    "dranet",
    "dra-prestart",
    "dra-plugin",
]

_PROGRAMS: dict[str, Role] = {
    "config-manager": "config-manager",
    "nvidia-device-plugin": "plugin",
    "nvidia-gpu-device-plugin": "gke-plugin",
    "gpu-feature-discovery": "gfd",
    "mps-control-daemon": "mps",
    "gpu-operator": "gpu-operator",
    "nvidia-mig-manager": "mig-manager",
    "nfd-worker": "nfd-worker",
    "nfd-master": "nfd-master",
    "nvidia-smi": "nvidia-smi",
    "driver-manager": "driver-manager",
    "nvidia-driver": "driver",
    "nvidia-ctk-installer": "toolkit",
}
INSTALLERS = {"cos-nvidia-installer:fixed": "Container-Optimized OS", "gke-nvidia-installer:fixed": "Ubuntu"}
"""Image of a Google driver installer -> the OS whose nodes contain it; no registry has them
(GoogleCloudPlatform/container-engine-accelerators, nvidia-driver-installer)."""
_BY_NAME: dict[str, Role] = {
    "aws-efa-k8s-device-plugin": "efa-plugin",
    "k8s-rdma-shared-dev-plugin": "rdma-shared-plugin",
    "sriov-network-device-plugin": "sriov-plugin",
    "dranet": "dranet",
}
"""Name of an image, in any registry and path -> the plugin or driver of a network that it runs."""
_VALIDATIONS: dict[str, Role] = {"driver-validation": "driver-validation", "toolkit-validation": "toolkit-validation"}


def role_of(container: JsonObject) -> Role:
    """Return which emulated program a container runs; "plain" for everything else.

    An image without a command runs its entry point: the device plugin's image runs the plugin.
    """
    command = [*(container.get("command") or ()), *(container.get("args") or ())]
    program = str(command[0]).rsplit("/", 1)[-1] if container.get("command") else ""
    if by_image := _role_by_image(container):
        return by_image
    if program == "mps-control-daemon" and "mount-shm" in command:
        return "plain"
    if program == "nfd-master" and "-prune" in {f"-{arg.lstrip('-')}" for arg in map(str, command)}:
        return "nfd-prune"
    if container.get("name") in _VALIDATIONS and program == "sh":  # waiting shells (NVIDIA/gpu-operator assets)
        return _VALIDATIONS[str(container["name"])]
    if program == "manager" and "kuberay" in str(container.get("image", "")):
        return "kuberay-operator"
    if program == "bash":  # of the DRA driver's chart: a waiting script, and a shell that starts the plugin
        shell = " ".join(map(str, command))
        dra: dict[str, Role] = {"/kubelet-plugin-prestart.sh": "dra-prestart", "gpu-kubelet-plugin -v": "dra-plugin"}
        return next((role for part, role in dra.items() if part in shell), "plain")
    if any("nvidia-smi" in str(part) for part in command):
        return "nvidia-smi"
    return _PROGRAMS.get(program, "plain")


def _role_by_image(container: JsonObject) -> Role | None:
    image = str(container.get("image", ""))
    for name, role in _BY_NAME.items():
        if f"/{name}:" in f"/{image}:":
            return role
    if image in INSTALLERS:
        return "google-installer"
    return "plugin" if not container.get("command") and "/k8s-device-plugin" in f"/{image}" else None


def env_of(container: JsonObject) -> dict[str, str]:
    """Return the variables with literal values; the emulated programs do not use those from fields and secrets."""
    return {item["name"]: str(item["value"]) for item in container.get("env") or () if item.get("value") is not None}


def arguments_of(container: JsonObject) -> list[str]:
    """Return the arguments of the program."""
    command = [str(part) for part in container.get("command") or ()]
    return [*command[1:], *(str(part) for part in container.get("args") or ())]


def config_maps(pod: JsonObject) -> list[str]:
    """Return the names of the ConfigMaps that the pod requires to start."""
    found = []
    for volume in spec(pod).get("volumes") or ():
        source = volume.get("configMap")
        if source and not source.get("optional"):
            found.append(str(source["name"]))
    return found


def mounted_config_map(pod: JsonObject, container: JsonObject, path: str) -> tuple[str, str] | None:
    """Return the ConfigMap that is mounted at a path in a container.

    Returns:
        Name of the ConfigMap and the key (for a file) or "" (for the directory itself); None if none is mounted there.
    """
    for mount in container.get("volumeMounts") or ():
        base = str(mount["mountPath"]).rstrip("/")
        if path.rstrip("/") != base and not path.startswith(f"{base}/"):
            continue
        volume = next((item for item in spec(pod).get("volumes") or () if item["name"] == mount["name"]), None)
        if volume and volume.get("configMap"):
            key = mount.get("subPath") or path[len(base) :].strip("/")
            return str(volume["configMap"]["name"]), _source_key(volume["configMap"], key)
    return None


def _source_key(source: Mapping[str, list[JsonObject]], path: str) -> str:
    items = source.get("items") or []
    return next((str(item["key"]) for item in items if item.get("path") == path), path)
