"""Emulated programs of the NVIDIA stack: what each does when its container starts or its config changes.

In scope: config-manager, device plugin, GFD, MPS daemon, NFD worker, nvidia-smi. Out of scope: container states
and back-off (`kubelet`), results (`plugin`, `gfd`, `nfd`, `smi`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes import nfd
from gpukube_sandbox.kube.nodes.containers import arguments_of, env_of
from gpukube_sandbox.kube.nodes.dradriver import DRA_ROLES, start_dra_part
from gpukube_sandbox.kube.nodes.drivers import DRIVER_ROLES, start_driver_part
from gpukube_sandbox.kube.nodes.fabric import FABRIC_ROLES, INFINIBAND, start_fabric_plugin
from gpukube_sandbox.kube.nodes.gfd import feature_labels
from gpukube_sandbox.kube.nodes.gkeplugin import advertise_gke
from gpukube_sandbox.kube.nodes.plugin import GPU, advertise
from gpukube_sandbox.kube.nodes.pluginconfig import CONFIG_LABEL, Crash, Settings, choose_config, read_settings
from gpukube_sandbox.kube.nodes.smi import INTERFACES, PROGRAM, can_run, interfaces, listing
from gpukube_sandbox.kube.store.objects import labels, name_of, namespace_of

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.processes import Process
    from gpukube_sandbox.kube.store.objects import JsonObject

_RETRY_S = 30.0


class NotFound(Crash):
    """The container cannot start because it does not contain the program."""


def config_label(node: JsonObject) -> str:
    """Return the node label that selects a config."""
    return labels(node).get(CONFIG_LABEL, "")


async def start(process: Process) -> None:
    """Start the container's program, or make it apply a changed config.

    Raises:
        Crash: The program exits with an error.
    """
    role = process.container.role
    if role == "config-manager":
        await _config_manager(process)
    elif role == "plugin":
        await _plugin(process)
    elif role == "gke-plugin":
        _gke_plugin(process)
    elif role == "gfd":
        await _gfd(process)
    elif role == "mps":
        await _mps(process)
    elif role == "nfd-worker":
        await _nfd_worker(process)
    elif role == "nfd-prune":
        await nfd.strip(process.api, await process.api.list("nodes"))
    elif role == "nvidia-smi":
        _nvidia_smi(process)
    elif role in FABRIC_ROLES:
        await start_fabric_plugin(process)
    elif role in DRIVER_ROLES:
        await start_driver_part(process)
    elif role in DRA_ROLES:
        start_dra_part(process)


async def _config_manager(process: Process) -> None:
    env = env_of(process.container.body)
    keys = await process.file(env.get("CONFIG_FILE_SRCDIR", "/available-configs"))
    label = labels(process.node).get(env.get("NODE_LABEL", CONFIG_LABEL), "")
    fallbacks = [item for item in env.get("FALLBACK_STRATEGIES", "").split(",") if item]
    process.run.label = label
    process.log.append(f"Label change detected: {env.get('NODE_LABEL', CONFIG_LABEL)}={label}")
    chosen = choose_config(label, keys, env.get("DEFAULT_CONFIG", ""), fallbacks)
    process.log.append(f"Updating to config: {chosen}" if chosen else "Updating to empty config")
    if env.get("ONESHOT") != "true" and chosen != process.run.config:
        process.run.reloads += 1
        process.log.append("Sending signal 'hangup' to " + env.get("PROCESS_TO_SIGNAL", ""))
    process.run.config = chosen
    process.log.append(f"Successfully updated to config: {chosen or ''}")


async def _settings(process: Process) -> Settings:
    body = process.container.body
    env, args = env_of(body), arguments_of(body)
    path = env.get("CONFIG_FILE") or next(
        (arg.split("=", 1)[1] for arg in args if arg.startswith("--config-file=")), ""
    )
    if not path:
        return read_settings(None, env, args)
    mounted = await process.file(path)
    if mounted:
        return read_settings(next(iter(mounted.values())), env, args)
    if not any(item.role == "config-manager" for item in [*process.run.inits, *process.run.mains]):
        raise Crash(
            f"unable to load config: unable to finalize config: error opening config file: open {path}: no such file"
        )
    available = await process.file("/available-configs")
    chosen = process.run.config
    return read_settings(available.get(chosen) if chosen else None, env, args)


async def _plugin(process: Process) -> None:
    machine, run = process.machine, process.run
    process.log.append("Starting Plugins.")
    machine.unregister(run.advertised)
    run.advertised = frozenset()
    settings = await _settings(process)
    daemon = any(other.runs("mps") for other in machine.pods.values())
    found = advertise(machine.shape.gpu, settings, mps_daemon=daemon)
    process.log.extend(found.log)
    machine.register(run.uid, found.resources, found.limited)
    run.advertised = frozenset(found.resources)
    if found.retry:
        process.container.retry_at = process.now + _RETRY_S


def _gke_plugin(process: Process) -> None:
    machine, run = process.machine, process.run
    found = advertise_gke(machine.shape.gpu)
    process.log.extend(found.log)
    machine.register(run.uid, found.resources, found.limited)
    run.advertised = frozenset(found.resources)


async def _gfd(process: Process) -> None:
    settings = await _settings(process)
    machine = process.machine
    found = feature_labels(machine.shape.gpu, settings, machine.shape.machine, process.run.born)
    name = name_of(process.node)
    feature = nfd.node_feature(f"nvidia-features-for-{name}", namespace_of(process.pod), name, found, process.pod)
    if not await nfd.publish(process.api, feature):
        raise Crash("failed to create NodeFeature object: the server could not find the requested resource")
    process.log.append("Creating NodeFeature object")


async def _mps(process: Process) -> None:
    settings = await _settings(process)
    if settings.sharing is None or settings.sharing.strategy != "mps":
        process.log.append("No devices are configured for MPS sharing; Waiting indefinitely.")
        return
    gpu = process.machine.shape.gpu
    if gpu is None or not gpu.driver:
        raise Crash("failed to create MPS manager: nvml init failed: ERROR_LIBRARY_NOT_FOUND")
    process.log.append(f"Starting MPS daemon for {GPU}")


async def _nfd_worker(process: Process) -> None:
    config = await process.file("/etc/kubernetes/node-feature-discovery/nfd-worker.conf")
    shape = process.machine.shape
    adapters = bool(shape.fabric.get(INFINIBAND))
    found = nfd.worker_labels(next(iter(config.values()), ""), gpu=shape.gpu is not None, infiniband=adapters)
    name = name_of(process.node)
    feature = nfd.node_feature(name, namespace_of(process.pod), name, found, process.pod)
    if not await nfd.publish(process.api, feature):
        raise Crash("failed to create NodeFeature object: the server could not find the requested resource")


def _nvidia_smi(process: Process) -> None:
    """Run nvidia-smi, which exists only in containers that have the driver."""
    body = process.container.body
    words = " ".join(map(str, [*(body.get("command") or ()), *(body.get("args") or ())])).split()
    command = next((word.strip("'\";&|") for word in words if PROGRAM in word), PROGRAM)
    if not can_run(process.machine, process.run, body, command):
        raise NotFound(
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "
            f'failed: unable to start container process: error during container init: exec: "{command}": executable '
            "file not found in $PATH: unknown"
        )
    process.log.extend(listing(process.machine, process.run, process.container.name))
    if INTERFACES[0] in words:
        process.log.extend(interfaces(body))
