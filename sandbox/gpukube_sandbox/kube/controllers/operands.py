"""The DaemonSets that the GPU Operator's controller creates from a ClusterPolicy.

In scope: their manifests. Out of scope: the controller (`operator`), what their programs do.

Source: NVIDIA/gpu-operator v26.7 assets/state-*, controllers/object_controls.go. Images are named without versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.controllers.replicas import template_hash
from gpukube_sandbox.kube.nodes.pluginconfig import CONFIG_LABEL

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

DEPLOY = "nvidia.com/gpu.deploy."
"""Prefix of the node labels that select a node's operands."""
MANAGED_BY = "gpu-operator"
APPLIED_HASH = "nvidia.com/last-applied-hash"

_PRIORITY = "system-node-critical"
_PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin"
_UNTIL_TOOLKIT = "until [ -f /run/nvidia/validations/toolkit-ready ]; do sleep 5; done"
_VALIDATOR_IMAGE = "nvcr.io/nvidia/gpu-operator"


def operands(policy: JsonObject, namespace: str) -> list[JsonObject]:
    """Return the DaemonSets of a policy's enabled operands.

    Args:
        policy: The ClusterPolicy's spec.
        namespace: The operator's namespace.
    """
    found = [_validator(policy)]
    if _enabled(policy, "driver"):
        found.append(_driver(policy))
    if _enabled(policy, "toolkit"):
        found.append(_toolkit(policy))
    if _enabled(policy, "devicePlugin"):
        found += [_plugin(policy), _mps(policy)]
    if _enabled(policy, "gfd"):
        found.append(_discovery(policy))
    if _enabled(policy, "dcgmExporter"):
        found.append(_plain("nvidia-dcgm-exporter", "dcgm-exporter", policy))
    if _enabled(policy, "migManager"):
        found.append(_mig_manager(policy))
    return [_finished(item, namespace) for item in found]


def _enabled(policy: JsonObject, key: str) -> bool:
    return bool((policy.get(key) or {}).get("enabled", True))


def _finished(item: JsonObject, namespace: str) -> JsonObject:
    item["metadata"]["namespace"] = namespace
    item["metadata"]["annotations"] = {APPLIED_HASH: template_hash(item["spec"]["template"])}
    return item


def _daemonset(
    name: str, selector: dict[str, str], policy: JsonObject, containers: list[JsonObject], **pod: object
) -> JsonObject:
    shared = policy.get("daemonsets") or {}
    marks = {"app": name, "app.kubernetes.io/managed-by": MANAGED_BY}
    spec = {
        "nodeSelector": selector,
        "tolerations": list(shared.get("tolerations") or []),
        "priorityClassName": shared.get("priorityClassName") or _PRIORITY,
        "initContainers": [],
        "containers": containers,
        "volumes": [],
        **pod,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "labels": {**(shared.get("labels") or {}), **marks}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"type": shared.get("updateStrategy") or "RollingUpdate"},
            "template": {"metadata": {"labels": {**(shared.get("labels") or {}), **marks}}, "spec": spec},
        },
    }


def _plain(name: str, operand: str, policy: JsonObject) -> JsonObject:
    container = {"name": name, "image": f"nvcr.io/nvidia/{operand}"}
    return _with_gpu(_daemonset(name, {f"{DEPLOY}{operand}": "true"}, policy, [container]), policy)


def _with_gpu(item: JsonObject, policy: JsonObject) -> JsonObject:
    """Make an operand's pods wait for the toolkit and use the runtime that provides the GPUs.

    Source: controllers/object_controls.go, setRuntimeClassName.
    """
    pod = item["spec"]["template"]["spec"]
    pod["initContainers"] = [_validation("toolkit", policy), *pod["initContainers"]]
    pod["runtimeClassName"] = runtime_class(policy)
    return item


def runtime_class(policy: JsonObject) -> str:
    """Return the runtime class of the operands' pods from a policy's spec."""
    return (policy.get("operator") or {}).get("runtimeClass") or "nvidia"


def _validation(part: str, policy: JsonObject) -> JsonObject:
    script = "nvidia-validator" if part == "driver" else _UNTIL_TOOLKIT
    where = str((policy.get("hostPaths") or {}).get("driverInstallDir") or "/run/nvidia/driver")
    env = [{"name": "DRIVER_INSTALL_DIR", "value": where}] if part == "driver" else []
    return {
        "name": f"{part}-validation",
        "image": _VALIDATOR_IMAGE,
        "command": ["sh", "-c"],
        "args": [script],
        "env": env,
    }


def _validator(policy: JsonObject) -> JsonObject:
    name = "nvidia-operator-validator"
    container = {"name": name, "image": _VALIDATOR_IMAGE, "command": ["sh", "-c"], "args": ["sleep infinity"]}
    item = _daemonset(name, {f"{DEPLOY}operator-validator": "true"}, policy, [container])
    pod = item["spec"]["template"]["spec"]
    pod["initContainers"] = [_validation("driver", policy), _validation("toolkit", policy)]
    pod["runtimeClassName"] = runtime_class(policy)
    return item


def _driver(policy: JsonObject) -> JsonObject:
    """Return the driver's DaemonSet: no GPU runtime, and OnDelete updates because a new driver needs idle GPUs."""
    version = (policy.get("driver") or {}).get("version") or ""
    image = f"nvcr.io/nvidia/driver:{version}"
    container = {"name": "nvidia-driver-ctr", "image": image, "command": ["nvidia-driver"], "args": ["init"]}
    item = _daemonset("nvidia-driver-daemonset", {f"{DEPLOY}driver": "true"}, policy, [container])
    manager = {
        "name": "k8s-driver-manager",
        "image": "nvcr.io/nvidia/cloud-native/k8s-driver-manager",
        "command": ["driver-manager"],
        "args": ["uninstall_driver"],
    }
    item["spec"]["template"]["spec"]["initContainers"] = [manager]
    item["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return item


def _toolkit(policy: JsonObject) -> JsonObject:
    section = policy.get("toolkit") or {}
    env = [
        *_env(section),
        {"name": "ROOT", "value": str(section.get("installDir") or "/usr/local/nvidia")},
        {"name": "CONTAINERD_RUNTIME_CLASS", "value": runtime_class(policy)},
    ]
    container = {
        "name": "nvidia-container-toolkit-ctr",
        "image": "nvcr.io/nvidia/k8s/container-toolkit",
        "command": ["nvidia-ctk-installer"],
        "env": env,
    }
    name = "nvidia-container-toolkit-daemonset"
    item = _daemonset(name, {f"{DEPLOY}container-toolkit": "true"}, policy, [container])
    item["spec"]["template"]["spec"]["initContainers"] = [_validation("driver", policy)]
    return item


def _plugin(policy: JsonObject) -> JsonObject:
    body = _configured("nvidia-device-plugin", "nvidia-device-plugin", policy, policy.get("devicePlugin") or {})
    return _with_config("nvidia-device-plugin-daemonset", {f"{DEPLOY}device-plugin": "true"}, policy, body)


def _discovery(policy: JsonObject) -> JsonObject:
    body = _configured("gpu-feature-discovery", "gpu-feature-discovery", policy, policy.get("gfd") or {})
    return _with_config("gpu-feature-discovery", {f"{DEPLOY}gpu-feature-discovery": "true"}, policy, body)


def _mps(policy: JsonObject) -> JsonObject:
    body = _configured("mps-control-daemon-ctr", "mps-control-daemon", policy, policy.get("devicePlugin") or {})
    selector = {f"{DEPLOY}device-plugin": "true", "nvidia.com/mps.capable": "true"}
    return _with_config("nvidia-device-plugin-mps-control-daemon", selector, policy, body)


def _mig_manager(policy: JsonObject) -> JsonObject:
    section = policy.get("migManager") or {}
    container = {
        "name": "nvidia-mig-manager",
        "image": "nvcr.io/nvidia/cloud-native/k8s-mig-manager",
        "command": ["nvidia-mig-manager"],
        "env": [*_env(section), {"name": "CONFIG_FILE", "value": "/mig-parted-config/config.yaml"}],
    }
    item = _daemonset("nvidia-mig-manager", {f"{DEPLOY}mig-manager": "true"}, policy, [container])
    item["spec"]["template"]["spec"]["initContainers"] = [_validation("toolkit", policy)]
    return item


def _configured(name: str, program: str, policy: JsonObject, section: JsonObject) -> JsonObject:
    """Return a container of the plugin's image.

    Without a MIG strategy in the policy, each node's config sets it. A strategy in the policy becomes an environment
    variable, which overrides all configs (controllers/object_controls.go applyMIGConfiguration).
    """
    strategy = (policy.get("mig") or {}).get("strategy") or ""
    env = [*_env(section), {"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"}]
    env += [{"name": "MIG_STRATEGY", "value": strategy}] if strategy else []
    env += [{"name": "CONFIG_FILE", "value": "/config/config.yaml"}] if _config_map(policy) else []
    return {"name": name, "image": _PLUGIN_IMAGE, "command": [program], "env": env}


def _config_map(policy: JsonObject) -> str:
    return str(((policy.get("devicePlugin") or {}).get("config") or {}).get("name") or "")


def _with_config(name: str, selector: dict[str, str], policy: JsonObject, body: JsonObject) -> JsonObject:
    """Return the DaemonSet of a container; with a config, config-manager is both an init container and a sidecar."""
    found = _config_map(policy)
    if not found:
        return _with_gpu(_daemonset(name, selector, policy, [body]), policy)
    mounts = [
        {"name": "available-configs", "mountPath": "/available-configs"},
        {"name": "config", "mountPath": "/config"},
    ]
    default = str(((policy.get("devicePlugin") or {}).get("config") or {}).get("default") or "")
    managers = [_config_manager(default, mounts, once=True), _config_manager(default, mounts, once=False)]
    volumes = [{"name": "available-configs", "configMap": {"name": found}}, {"name": "config", "emptyDir": {}}]
    containers = [{**body, "volumeMounts": mounts}, managers[1]]
    item = _daemonset(name, selector, policy, containers, initContainers=[managers[0]], volumes=volumes)
    return _with_gpu(item, policy)


def _config_manager(default: str, mounts: list[dict[str, str]], *, once: bool) -> JsonObject:
    env = {
        "ONESHOT": str(once).lower(),
        "NODE_LABEL": CONFIG_LABEL,
        "CONFIG_FILE_SRCDIR": "/available-configs",
        "CONFIG_FILE_DST": "/config/config.yaml",
        "DEFAULT_CONFIG": default,
        "FALLBACK_STRATEGIES": "empty",
    }
    return {
        "name": "config-manager-init" if once else "config-manager",
        "image": _PLUGIN_IMAGE,
        "command": ["config-manager"],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "volumeMounts": mounts,
    }


def _env(section: JsonObject) -> list[JsonObject]:
    return [dict(item) for item in section.get("env") or ()]
