"""Starting, finding, steering and stopping the background process; what `gpukube sandbox` and the tests call.

In scope: the process from outside, and its control API as functions. Out of scope: anything that serves.
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
from urllib.parse import urlsplit

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
    "configure",
    "deny",
    "down",
    "list_faults",
    "load_info",
    "requests_since",
    "reset",
    "status",
    "tamper",
    "up",
]

Json = dict[str, object]

LOG_FILE = "sandbox.log"
IDLE_S = 4 * 3600.0
"""Longer than a meeting, shorter than a night."""
_LOOK_EVERY_S = 0.02
_STOP_S = 5.0
_DIE_S = 60.0
_CALL_S = 60.0
_START_S = 120.0
"""Longer than a busy machine stalls; nothing that goes well takes so long."""

_children: list[subprocess.Popen[bytes]] = []
"""Processes that this one started: kept, so that they are reaped once they end and nobody warns that they still run."""


class SandboxError(Exception):
    """The sandbox did not start, does not answer, or refused a control call.

    Attributes:
        at: Keys and indexes that lead to what is wrong in the body of the call; () where it is not said.
    """

    at: tuple[str | int, ...] = ()


class Refused(SandboxError):
    """The sandbox runs, and does not take what a control call says."""


class NotInstalled(Refused):
    """The sandbox needs a library for that which is not installed."""


def up(
    state_dir: Path, speed: float = 60.0, *, idle_timeout_s: float = IDLE_S, deadline_s: float = _START_S
) -> SandboxInfo:
    """Start the sandbox unless it runs, and wait until it answers. Many starters at once make one process.

    Args:
        state_dir: Made when missing, mode 0700.
        speed: Sandbox seconds per wall second; a running sandbox keeps its own.
        idle_timeout_s: End after so many wall seconds without a request; 0 = never. A running sandbox keeps its own.
        deadline_s: Wall seconds to wait for it.

    Raises:
        SandboxError: It ended or did not answer in time; the end of its log is in the message.
    """
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(state_dir):
        process = None
        until = time.monotonic() + deadline_s
        while time.monotonic() < until:
            info = _answering(state_dir)
            if info is not None:
                return info
            if process is None and not is_running(state_dir):  # from the start, or the one that ran was just ending
                process = _spawn(state_dir, speed, idle_timeout_s)
            elif process is not None and process.poll() is not None:
                break
            time.sleep(_LOOK_EVERY_S)
    message = f"the sandbox did not start; its log ends with: {_end_of_log(state_dir)}"
    raise SandboxError(message)


def _answering(state_dir: Path) -> SandboxInfo | None:
    """The sandbox that runs and answers; None while there is none, or one that just ended."""
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
    remove_info(state_dir)  # left behind by one that was killed
    remove_credentials(state_dir)
    root = str(Path(__file__).resolve().parents[1])
    environment = child_environment(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (root, environment.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "gpukube_sandbox", "serve", "--state-dir", str(state_dir)]
    command += ["--speed", str(speed), "--idle-timeout", str(idle_timeout_s)]
    handle = os.open(state_dir / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own module, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=environment,
            cwd=state_dir,
            start_new_session=True,  # outlives the terminal and its Ctrl-C
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
    """Stop the sandbox and delete its keys and credentials, also those of one that was killed.

    Returns:
        Whether one was running.

    Raises:
        SandboxError: It still runs.
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
                    remove_credentials(state_dir)  # it does so itself, unless it had to be killed
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
    """Wait for a child that has let go of its lock: it ends in an instant."""
    for child in _children:
        if child.pid == pid:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_DIE_S)
    _children[:] = [child for child in _children if child.poll() is None]


def call(info: SandboxInfo, method: str, path: str, body: Mapping[str, object] | None = None) -> Json:
    """Call the control API.

    Args:
        info: Which sandbox.
        method: HTTP method.
        path: Below /_sandbox, such as "status" or "requests?after=3".
        body: JSON body.

    Raises:
        SandboxError: No answer.
        Refused: The call is wrong; `at` leads to the mistake.
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
    """Clusters with their pools and nodes, request counts, clock."""
    return call(info, "GET", "status")


def declare(info: SandboxInfo, provider: str, **things: object) -> list[str]:
    """Let things exist that pools name; keys as the clouds' `declare` read them. Gives those that did not yet."""
    made = call(info, "POST", "things", {"provider": provider, **things})["made"]
    return [str(thing) for thing in made] if isinstance(made, list) else []


def reset(info: SandboxInfo) -> None:
    """Wipe clusters, faults and log of the running process."""
    call(info, "POST", "reset")


def load(info: SandboxInfo, name: str) -> tuple[bool, str]:
    """Put back what was saved under a name from the same beginnings, in a sandbox that has answered nothing yet.

    Args:
        info: Which sandbox.
        name: What will be done to it.

    Returns:
        Whether there was something, and the name to `save` it by; "" where requests have been answered already.
    """
    answer = call(info, "POST", "load", {"name": name})
    return bool(answer["loaded"]), str(answer["name"])


def save(info: SandboxInfo, name: str) -> bool:
    """Keep everything as it is now, under a name that `load` gave; False while something is at work."""
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
    """Make an AKS cluster with one system pool, or do nothing when it is there.

    Args:
        info: Which sandbox.
        subscription: UUID.
        resource_group: Its name.
        name: Cluster name.
        kubernetes_version: 1.34.2 when empty.
        location: eastus when empty.
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
    """Make an EKS cluster with one node group of CPUs, or do nothing when it is there.

    Args:
        info: Which sandbox.
        account: Twelve digits; its access key is `AKIAGPUK` and those.
        region: Such as us-east-1; its zones are a, b and c.
        name: Cluster name.
        kubernetes_version: 1.34.2 when empty.
        options: nodeGroups (bodies of CreateNodegroup; only nodegroupName is needed), subnets ({id, zone, public,
            listed}), foreignPlugin, publicEndpoint, status, authenticationMode, autoMode, mapped, groupQuota,
            nodeQuota, extendedTolerations, roles (names of further IAM roles), tags.

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
    """Make a GKE cluster with one pool of CPUs, or do nothing when it is there.

    Args:
        info: Which sandbox.
        project: Project id.
        location: A zone, or a region for a cluster in its zones a, b and c.
        name: Cluster name.
        kubernetes_version: "1.34", "1.34.1" or a whole GKE version; 1.34.1-gke.1829001 when empty.
        options: cpuPool (true), releaseChannel ("REGULAR"), zones, autopilot, gpuQuota {metric: GPUs},
            acceleratorZones {type: [zones]}, foreignPlugin, reservations {name: {zone, machineType, count}}.

    Returns:
        `{"id", "created", "kubeUrl"}`.
    """
    body: Json = {"provider": "gke", "project": project, "location": location, "name": name}
    body |= {"kubernetesVersion": kubernetes_version, "options": dict(options or {})}
    return call(info, "POST", "clusters", body)


def requests_since(info: SandboxInfo, after: int = 0) -> list[Json]:
    """Requests with an index above `after`, oldest first: index, service, method, path, query, status, body, fault."""
    found = call(info, "GET", f"requests?after={after}")["requests"]
    return found if isinstance(found, list) else []


def add_fault(info: SandboxInfo, action: str, **parts: object) -> Json:
    """Add a fault; keys as `faults.Fault`, or action "background" with cluster, seconds, state."""
    return call(info, "POST", "faults", {"action": action, **parts})


def list_faults(info: SandboxInfo) -> list[Json]:
    """All faults, with how often each was met (seen) and struck."""
    found = call(info, "GET", "faults")["faults"]
    return found if isinstance(found, list) else []


def clear_faults(info: SandboxInfo) -> None:
    """Take all faults away and let go what hangs."""
    call(info, "DELETE", "faults")


def tamper(info: SandboxInfo, cluster: str, pool: str, *, delete: bool = False, **properties: object) -> None:
    """Change a pool behind the user's back: delete it, or set wire properties without any check."""
    call(info, "POST", "tamper", {"cluster": cluster, "pool": pool, "delete": delete, "set": properties})


def upgrade_cluster(info: SandboxInfo, cluster: str, *, kubernetes_version: str = "", images: str = "") -> None:
    """Upgrade the control plane of a cluster at once, or let there be newer node images, of a date such as 20260915."""
    call(info, "POST", "upgrade", {"cluster": cluster, "kubernetesVersion": kubernetes_version, "images": images})


def deny(info: SandboxInfo, cluster: str, *denied: tuple[str, str]) -> None:
    """Let the cluster's RBAC refuse (verb, resource) pairs, such as ("create", "secrets"); none allows everything."""
    call(info, "POST", "deny", {"cluster": cluster, "denied": [list(pair) for pair in denied]})


def used_permissions(info: SandboxInfo) -> frozenset[str]:
    """Permissions that calls of gpukube have needed since the sandbox was started; a reset leaves them.

    Of a Kubernetes API as "VERB RESOURCE[.GROUP] [in NAMESPACE]".
    """
    used = call(info, "GET", "permissions")["used"]
    return frozenset(map(str, used)) if isinstance(used, list) else frozenset()


def deny_permissions(info: SandboxInfo, *permissions: str) -> None:
    """Refuse these permissions, of a cloud or of all Kubernetes APIs ("create pods/eviction"); none allows everything.

    Raises:
        SandboxError: No call here needs one of them.
    """
    call(info, "POST", "permissions", {"denied": permissions})


def allow_only(info: SandboxInfo, permissions: Iterable[str] | None) -> None:
    """Allow only these permissions of clouds, patterns such as "ec2:Describe*" too; None: everything."""
    call(info, "POST", "permissions", {"allowed": None if permissions is None else list(permissions)})


def become(info: SandboxInfo, user: str, *groups: str, cluster: str = "") -> None:
    """Let the bearers of a cluster's token, or of all, be a user who may do what Roles say; "": an administrator."""
    call(info, "POST", "user", {"cluster": cluster, "user": user, "groups": groups})


def configure(info: SandboxInfo, **settings: object) -> Json:
    """Set `speed`, `throttling`, `limits`, `pace`, `pageSize`, `emptyGroups`, `gkePace` of the running process.

    `reset` undoes all but speed.
    """
    return call(info, "POST", "settings", settings)
