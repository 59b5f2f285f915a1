"""Starts, finds, controls, and stops the background process, for `gpukube sandbox` and the tests.

In scope: managing the process, and its control API as functions. Out of scope: serving.
Standard library only: the CLI must not load a web server to print a status.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from gpukube_sandbox.guard import child_environment
from gpukube_sandbox.state import SandboxInfo, is_running, load_info, locked, remove_credentials, remove_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "NotInstalled",
    "Refused",
    "SandboxError",
    "SandboxInfo",
    "add_cluster",
    "add_eks_cluster",
    "add_fault",
    "add_gke_cluster",
    "call",
    "clear_faults",
    "clear_stock",
    "configure",
    "deny",
    "down",
    "list_faults",
    "list_stock",
    "load_info",
    "requests_since",
    "reset",
    "set_stock",
    "status",
    "tamper",
    "up",
]

Json = dict[str, object]

LOG_FILE = "sandbox.log"
IDLE_S = 4 * 3600.0
"""Default idle timeout: longer than a meeting, shorter than a night."""
_LOOK_EVERY_S = 0.02
_STOP_S = 5.0
_DIE_S = 60.0
_CALL_S = 60.0
_START_S = 120.0
"""Start timeout: longer than a busy machine stalls; a successful start never takes this long."""

_children: list[subprocess.Popen[bytes]] = []
"""Child processes, kept so that they are reaped once they exit and Python does not warn that they are running."""


class SandboxError(Exception):
    """The sandbox did not start, does not respond, or refused a control call.

    Attributes:
        at: Path (keys and indexes) of the mistake in the body of the call; () if unknown.
    """

    at: tuple[str | int, ...] = ()


class Refused(SandboxError):
    """The sandbox is running, but rejected a control call."""


class NotInstalled(Refused):
    """The sandbox needs a library that is not installed."""


def up(
    state_dir: Path, speed: float = 60.0, *, idle_timeout_s: float = IDLE_S, deadline_s: float = _START_S
) -> SandboxInfo:
    """Start the sandbox unless it is running, and wait until it responds; concurrent callers start one process.

    Args:
        state_dir: Created with mode 0700 if missing.
        speed: Sandbox seconds per wall second; a running sandbox keeps its speed.
        idle_timeout_s: Wall seconds without a request after which it stops; 0 = never. A running sandbox keeps its own.
        deadline_s: Wall seconds to wait for it.

    Raises:
        SandboxError: It exited or did not respond in time; the message contains the end of its log.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(state_dir):
        process = None
        until = time.monotonic() + deadline_s
        while time.monotonic() < until:
            info = _answering(state_dir)
            if info is not None:
                return info
            if process is None and not is_running(state_dir):  # not running, or the previous one was just exiting
                process = _spawn(state_dir, speed, idle_timeout_s)
            elif process is not None and process.poll() is not None:
                break
            time.sleep(_LOOK_EVERY_S)
    message = f"the sandbox did not start; its log ends with: {_end_of_log(state_dir)}"
    raise SandboxError(message)


def _answering(state_dir: Path) -> SandboxInfo | None:
    """Return the sandbox that is running and responding, if any."""
    info = load_info(state_dir)
    if info is None:
        return None
    try:
        status(info)
    except SandboxError:
        if load_info(state_dir) == info:
            raise
        return None
    return info


def _spawn(state_dir: Path, speed: float, idle_timeout_s: float) -> subprocess.Popen[bytes]:
    remove_info(state_dir)  # left by a killed process
    remove_credentials(state_dir)
    root = str(Path(__file__).resolve().parents[1])
    environment = child_environment(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "gpukube_sandbox", "serve", "--state-dir", str(state_dir)]
    command += ["--speed", str(speed), "--idle-timeout", str(idle_timeout_s)]
    handle = os.open(state_dir / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(  # noqa: S603 - this package's module, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=state_dir,
            start_new_session=True,  # survives the terminal and its Ctrl-C
        )
    _children.append(process)
    return process


def _end_of_log(state_dir: Path) -> str:
    try:
        lines = (state_dir / LOG_FILE).read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return " | ".join(lines[-5:]) or "nothing"


def down(state_dir: Path) -> bool:
    """Stop the sandbox and delete its keys and credentials, even those of a killed one.

    Returns:
        Whether it was running.

    Raises:
        SandboxError: It is still running.
    """
    if not state_dir.is_dir():
        return False
    with locked(state_dir):
        if not is_running(state_dir):
            remove_info(state_dir)
            remove_credentials(state_dir)
            return False
        info = load_info(state_dir)
        if info is not None:
            for number, patience_s in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, _DIE_S)):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(info.pid, number)
                if _is_gone(state_dir, patience_s):
                    _reap(info.pid)
                    remove_info(state_dir)
                    remove_credentials(state_dir)  # it does this itself unless it had to be killed
                    return True
        elif _is_gone(state_dir, _STOP_S):
            return True
    message = f"the sandbox in {state_dir} does not stop"
    raise SandboxError(message)


def _is_gone(state_dir: Path, patience_s: float) -> bool:
    until = time.monotonic() + patience_s
    while is_running(state_dir):
        if time.monotonic() > until:
            return False
        time.sleep(_LOOK_EVERY_S)
    return True


def _reap(pid: int) -> None:
    """Wait for a child that has released its lock, so it exits in a moment."""
    for child in _children:
        if child.pid == pid:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_DIE_S)
    _children[:] = [child for child in _children if child.poll() is None]


def call(info: SandboxInfo, method: str, path: str, body: Mapping[str, object] | None = None) -> Json:
    """Call the control API.

    Args:
        info: The sandbox.
        method: HTTP method.
        path: Path below /_sandbox, such as "status" or "requests?after=3".
        body: JSON body.

    Raises:
        SandboxError: It does not respond.
        Refused: The call is invalid; `at` is the path of the mistake.
        NotInstalled: A library is missing; the message names it.
    """
    address = urlsplit(info.control_url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_CALL_S)
    headers = {"Authorization": f"Bearer {info.control_token}", "Content-Type": "application/json"}
    try:
        connection.request(method, f"{address.path}/{path}", json.dumps(body or {}), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        message = f"the sandbox does not answer: {error}"
        raise SandboxError(message) from error
    finally:
        connection.close()
    if response.status == http.client.NOT_IMPLEMENTED and isinstance(answer, dict):
        raise NotInstalled(str(answer.get("error")))
    if response.status != http.client.OK or not isinstance(answer, dict):
        refusal = Refused(str(answer.get("error") if isinstance(answer, dict) else answer))
        refusal.at = tuple(answer.get("at") or ()) if isinstance(answer, dict) else ()
        raise refusal
    return answer


def status(info: SandboxInfo) -> Json:
    """Return clusters with their pools and nodes, request counts, and clock."""
    return call(info, "GET", "status")


def declare(info: SandboxInfo, provider: str, **things: object) -> list[str]:
    """Create resources that pools reference, with keys as in the clouds' `declare`; return the new ones."""
    made = call(info, "POST", "things", {"provider": provider, **things})["made"]
    return [str(thing) for thing in made] if isinstance(made, list) else []


def reset(info: SandboxInfo) -> None:
    """Delete clusters, faults, and the request log."""
    call(info, "POST", "reset")


def load(info: SandboxInfo, name: str) -> tuple[bool, str]:
    """Restore what was saved under a name with the same origin, in a sandbox that has not answered requests yet.

    Args:
        info: The sandbox.
        name: Name of the setup that the caller will apply.

    Returns:
        Whether something was restored, and the name to `save` it under; "" if requests have been answered already.
    """
    answer = call(info, "POST", "load", {"name": name})
    return bool(answer["loaded"]), str(answer["name"])


def save(info: SandboxInfo, name: str) -> bool:
    """Save the current state under a name that `load` returned; return False while an operation is running."""
    return bool(call(info, "POST", "save", {"name": name})["saved"])


def add_cluster(  # noqa: PLR0913 - the fields of a cluster
    info: SandboxInfo,
    subscription: str,
    resource_group: str,
    name: str,
    *,
    kubernetes_version: str = "",
    location: str = "",
    options: Mapping[str, object] | None = None,
) -> Json:
    """Create an AKS cluster with one system pool, or do nothing if it exists.

    Args:
        info: The sandbox.
        subscription: UUID.
        resource_group: Name of the resource group.
        name: Cluster name.
        kubernetes_version: Defaults to 1.34.2.
        location: Defaults to eastus.
        options: disableLocalAccounts, aad, nodeProvisioningMode, tenant, identity, foreignPlugin.

    Returns:
        `{"id", "created", "kubeUrl"}`.
    """
    body: Json = {"provider": "aks", "subscription": subscription, "resourceGroup": resource_group, "name": name}
    body |= {"kubernetesVersion": kubernetes_version, "location": location, "options": dict(options or {})}
    return call(info, "POST", "clusters", body)


def add_eks_cluster(  # noqa: PLR0913 - the fields of a cluster
    info: SandboxInfo,
    account: str,
    region: str,
    name: str,
    *,
    kubernetes_version: str = "",
    options: Mapping[str, object] | None = None,
) -> Json:
    """Create an EKS cluster with one CPU node group, or do nothing if it exists.

    Args:
        info: The sandbox.
        account: Twelve digits; its access key is `AKIAGPUK` and these digits.
        region: A region such as us-east-1; its zones are a, b, and c.
        name: Cluster name.
        kubernetes_version: Defaults to 1.34.2.
        options: nodeGroups (bodies of CreateNodegroup; only nodegroupName is required), subnets ({id, zone, public,
            listed}), foreignPlugin, autoscaler (expanders of an installed Cluster Autoscaler), publicEndpoint, status,
            authenticationMode, autoMode, mapped, groupQuota, nodeQuota, extendedTolerations, roles (names of further
            IAM roles), tags.

    Returns:
        `{"id", "created", "kubeUrl"}`.
    """
    body: Json = {"provider": "eks", "account": account, "region": region, "name": name}
    body |= {"kubernetesVersion": kubernetes_version, "options": dict(options or {})}
    return call(info, "POST", "clusters", body)


def add_gke_cluster(  # noqa: PLR0913 - the fields of a cluster
    info: SandboxInfo,
    project: str,
    location: str,
    name: str,
    *,
    kubernetes_version: str = "",
    options: Mapping[str, object] | None = None,
) -> Json:
    """Create a GKE cluster with one CPU pool, or do nothing if it exists.

    Args:
        info: The sandbox.
        project: Project id.
        location: A zone, or a region for a cluster in its zones a, b, and c.
        name: Cluster name.
        kubernetes_version: "1.34", "1.34.1", or a full GKE version; defaults to 1.34.1-gke.1829001.
        options: cpuPool (true), releaseChannel ("REGULAR"), zones, autopilot, gpuQuota {metric: GPUs},
            acceleratorZones {type: [zones]}, foreignPlugin, reservations {name: {zone, machineType, count}}.

    Returns:
        `{"id", "created", "kubeUrl"}`.
    """
    body: Json = {"provider": "gke", "project": project, "location": location, "name": name}
    body |= {"kubernetesVersion": kubernetes_version, "options": dict(options or {})}
    return call(info, "POST", "clusters", body)


def requests_since(info: SandboxInfo, after: int = 0) -> list[Json]:
    """Return requests with an index above `after`, oldest first: index, service, method, path, query, status, ..."""
    found = call(info, "GET", f"requests?after={after}")["requests"]
    return found if isinstance(found, list) else []


def add_fault(info: SandboxInfo, action: str, **parts: object) -> Json:
    """Add a fault, with keys as in `faults.Fault`, or action "background" with cluster, seconds, state."""
    return call(info, "POST", "faults", {"action": action, **parts})


def list_faults(info: SandboxInfo) -> list[Json]:
    """Return all faults, with how often each matched (seen) and was injected (struck)."""
    found = call(info, "GET", "faults")["faults"]
    return found if isinstance(found, list) else []


def clear_faults(info: SandboxInfo) -> None:
    """Remove all faults; hanging requests continue."""
    call(info, "DELETE", "faults")


def set_stock(
    info: SandboxInfo, provider: str, free: int, then: Mapping[float, int] | None = None, **place: str
) -> None:
    """Limit the machines of a cloud.

    Args:
        info: The sandbox.
        provider: "eks", "aks", "gke", or "*".
        free: Machines in total that launches can take from now on.
        then: Sandbox seconds from now -> machines in total from then on.
        place: `type`, `zone` and `kind` (see `stock.MARKETS`); one that is not given is any.

    Raises:
        Refused: An unknown cloud or kind, or a number out of bounds.
    """
    steps = {f"{at:g}": count for at, count in (then or {}).items()}
    call(info, "POST", "stock", {"provider": provider, "free": free, "then": steps, **place})


def list_stock(info: SandboxInfo) -> list[Json]:
    """Return all entries, with their total now and how many machines are taken."""
    found = call(info, "GET", "stock")["stock"]
    return found if isinstance(found, list) else []


def clear_stock(info: SandboxInfo) -> None:
    """Remove all entries: there are machines without limit."""
    call(info, "DELETE", "stock")


def tamper(info: SandboxInfo, cluster: str, pool: str, *, delete: bool = False, **properties: object) -> None:
    """Change a pool out of band: delete it, or set wire properties without any check."""
    call(info, "POST", "tamper", {"cluster": cluster, "pool": pool, "delete": delete, "set": properties})


def gpu_holders(info: SandboxInfo, cluster: str) -> Json:
    """Return which pods hold each GPU and MIG instance of each node: node -> UUID -> pods."""
    return call(info, "GET", f"holders?cluster={quote(cluster)}")


def sysctls(info: SandboxInfo, cluster: str) -> Json:
    """Return the kernel parameters that were set on each node of a cluster."""
    return call(info, "GET", f"sysctls?cluster={quote(cluster)}")


def upgrade_cluster(info: SandboxInfo, cluster: str, *, kubernetes_version: str = "", images: str = "") -> None:
    """Upgrade a cluster's control plane immediately, or publish newer node images with a date such as 20260915."""
    call(info, "POST", "upgrade", {"cluster": cluster, "kubernetesVersion": kubernetes_version, "images": images})


def deny(info: SandboxInfo, cluster: str, *denied: tuple[str, str]) -> None:
    """Make the cluster's RBAC deny (verb, resource) pairs, such as ("create", "secrets"); without any, allow all."""
    call(info, "POST", "deny", {"cluster": cluster, "denied": [list(pair) for pair in denied]})


def used_permissions(info: SandboxInfo) -> frozenset[str]:
    """Return the permissions that gpukube's calls have needed since the sandbox started, regardless of resets.

    Those of Kubernetes APIs have the format "VERB RESOURCE[.GROUP] [in NAMESPACE]".
    """
    used = call(info, "GET", "permissions")["used"]
    return frozenset(map(str, used)) if isinstance(used, list) else frozenset()


def deny_permissions(info: SandboxInfo, *permissions: str) -> None:
    """Deny permissions of a cloud or of all Kubernetes APIs ("create pods/eviction"); without any, allow all.

    Raises:
        SandboxError: No call in the sandbox needs one of them.
    """
    call(info, "POST", "permissions", {"denied": permissions})


def allow_only(info: SandboxInfo, permissions: Iterable[str] | None) -> None:
    """Allow only these permissions of clouds, including patterns such as "ec2:Describe*"; None allows all."""
    call(info, "POST", "permissions", {"allowed": None if permissions is None else list(permissions)})


def become(info: SandboxInfo, user: str, *groups: str, cluster: str = "") -> None:
    """Make the token of a cluster, or of all, authenticate a user with rights by Roles; "": an administrator."""
    call(info, "POST", "user", {"cluster": cluster, "user": user, "groups": groups})


def configure(info: SandboxInfo, **settings: object) -> Json:
    """Set `speed`, `throttling`, `limits`, `pace`, `pageSize`, `emptyGroups`, `gkePace` of the running process.

    `reset` undoes all except speed.
    """
    return call(info, "POST", "settings", settings)
