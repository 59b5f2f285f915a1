"""Emulated programs that install a driver and a container runtime on a node without them.

In scope: the GPU Operator's driver container and toolkit, and the init containers that wait for them. Out of scope:
their DaemonSets (`operands`), container states (`kubelet`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.nodes.containers import INSTALLERS, env_of
from gpukube_sandbox.kube.nodes.pluginconfig import Crash

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.containers import Role
    from gpukube_sandbox.kube.nodes.processes import Process

DRIVER_ROLES: frozenset[Role] = frozenset(
    {"driver-manager", "driver", "google-installer", "toolkit", "driver-validation", "toolkit-validation"}
)

_POLL_S = 5.0
"""Sandbox seconds between checks of a container that waits for driver or toolkit (NVIDIA/gpu-operator: sleep 5)."""
_DEPLOY_DRIVER = "nvidia.com/gpu.deploy.driver"


async def start_driver_part(process: Process) -> None:
    """Start one of these programs.

    Raises:
        Crash: The program exits with an error.
    """
    match process.container.role:
        case "driver-manager":
            await _driver_manager(process)
        case "driver":
            _driver(process)
        case "toolkit":
            _toolkit(process)
        case "google-installer":
            _google_installer(process)
        case "driver-validation":
            machine, root = process.machine, env_of(process.container.body).get("DRIVER_INSTALL_DIR", "")
            found = machine.has_driver and machine.driver_root in ("", root)
            _wait_for(process, is_present=found, what="driver")
        case _:
            machine = process.machine
            _wait_for(process, is_present=machine.has_driver and bool(machine.runtimes), what="container toolkit")


def _wait_for(process: Process, *, is_present: bool, what: str) -> None:
    process.container.holds = not is_present
    if not is_present:
        process.log.append(f"waiting for nvidia {what} to be setup")
        process.container.retry_at = process.now + _POLL_S


async def _driver_manager(process: Process) -> None:
    """Keep a preinstalled driver: label the node so that the driver's pod is removed.

    Source: NVIDIA/gpu-operator release notes (pre-installed drivers).
    """
    if process.machine.preinstalled_driver:
        await process.api.patch("nodes", process.node, {"metadata": {"labels": {_DEPLOY_DRIVER: "pre-installed"}}})
        process.container.holds = True


def _driver(process: Process) -> None:
    """Build and load the driver; of the emulated operating systems, only Ubuntu has a driver container.

    Source: NVIDIA/cloud-native-docs gpu-operator/platform-support; NVIDIA/gpu-operator#1623 (Container-Optimized OS).
    """
    system = process.machine.shape.os_image
    if not system.startswith("Ubuntu"):
        raise Crash(f"could not resolve kernel headers: there is no driver container for {system}")
    process.machine.load_driver("/run/nvidia/driver")
    process.log.append("Loading NVIDIA driver kernel modules... Done, now waiting for signal")


def _google_installer(process: Process) -> None:
    """Install Google's driver below its own directory; the image exists only on nodes of its OS."""
    image, system = str(process.container.body.get("image", "")), process.machine.shape.os_image
    if not system.startswith(INSTALLERS[image]):
        raise Crash(f'ErrImageNeverPull: Container image "{image}" is not present with pull policy of Never')
    process.machine.load_driver("/home/kubernetes/bin/nvidia")
    process.log.append("Finished installing the drivers.")


def _toolkit(process: Process) -> None:
    """Add the toolkit's runtime to the host's containerd, under the name that the operator sets.

    Source: NVIDIA/gpu-operator controllers/object_controls.go (CONTAINERD_RUNTIME_CLASS).
    """
    env, system = env_of(process.container.body), process.machine.shape.os_image
    if system.startswith("Container-Optimized OS") and not env.get("ROOT", "").startswith("/home/"):
        raise Crash(f"error installing toolkit: mkdir {env.get('ROOT')}: read-only file system")
    process.machine.runtimes.add(env.get("CONTAINERD_RUNTIME_CLASS", "nvidia"))
    process.log.append("Successfully configured containerd")
