"""kubectl exec: runs a program in a container, over a WebSocket.

In scope: the subprotocol, and `nvidia-smi`, the only available program. Out of scope: its output (`nodes.smi`).

Source: k8s.io/apimachinery pkg/util/remotecommand (v5.channel.k8s.io): binary messages of one channel's number and its
bytes; the last one is a Status on channel 3. NVIDIA/k8s-device-plugin#346 (kubectl's message for a missing program).
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from gpukube_sandbox.kube.store import problems
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import spec, status
from gpukube_sandbox.kube.store.problems import ApiProblem

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams
    from starlette.websockets import WebSocket

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.http.requests import Target
    from gpukube_sandbox.kube.store.objects import JsonObject

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STREAMS = ("exec", "attach", "portforward")
_STDOUT, _STATUS = b"\x01", b"\x03"
_PROGRAM = "nvidia-smi"


class _NotStarted(Exception):
    """The container has no such program."""


def _refusal(what: str) -> ApiProblem:
    return ApiProblem(
        501,
        "NotImplemented",
        f"the sandbox does not emulate {what}: its pods run no real programs. `kubectl exec POD -- nvidia-smi -L` "
        "(kubectl 1.31 or later) lists the GPUs that a pod holds, `kubectl logs` shows what it wrote",
    )


def refuse(cluster: KubeCluster, query: QueryParams, target: Target) -> NoReturn:
    """Reject a stream request without a WebSocket, which kubectl sends as a retry after any refusal.

    Raises:
        ApiProblem: Always.
    """
    if target.part != "exec":
        raise _refusal(target.part)
    with suppress(_NotStarted):
        _output_of(cluster, query, target)
    raise _refusal("exec over anything but a WebSocket")


def _output_of(cluster: KubeCluster, query: QueryParams, target: Target) -> str:
    """Run a command in a pod's container and return its output.

    Raises:
        ApiProblem: 404 if the pod does not exist, 400 if the container is not running, 501 for another program.
        _NotStarted: The container does not contain the program.
    """
    pod = cluster.store.get(CORE["pods"], target.namespace, target.name)
    names = [item["name"] for item in spec(pod).get("containers") or ()]
    command, chosen = query.getlist("command"), query.get("container") or names[0]
    if chosen not in names:
        raise problems.bad_request(f"container {chosen} is not valid for pod {target.name}")
    states = {item["name"]: item.get("state") or {} for item in status(pod).get("containerStatuses") or ()}
    if not spec(pod).get("nodeName"):
        raise problems.bad_request(f"pod {target.name} does not have a host assigned")
    if "running" not in states.get(chosen, {}):
        phase = status(pod).get("phase", "Pending")
        if phase in {"Succeeded", "Failed"}:
            raise problems.bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
        raise ApiProblem(500, "InternalError", f'Internal error occurred: container not found ("{chosen}")')
    if not command or command[0].rpartition("/")[2] != _PROGRAM or command[1:] not in ([], ["-L"], ["--list-gpus"]):
        raise _refusal(f"exec of {' '.join(command)}")
    lines = cluster.gpus_of(pod, chosen, command[0])
    if lines is None:
        place = hashlib.sha256(f"{pod['metadata']['uid']}/{chosen}".encode()).hexdigest()
        raise _NotStarted(
            "Internal error occurred: error executing command in container: failed to exec in container: failed to "
            f'start exec "{place}": OCI runtime exec failed: exec failed: unable to start container process: exec: '
            f'"{command[0]}": executable file not found in $PATH: unknown'
        )
    return "".join(f"{line}\n" for line in lines)


async def serve(cluster: KubeCluster, socket: WebSocket, target: Target) -> None:
    """Run the requested command, then close the connection.

    Raises:
        ApiProblem: The pod or the command does not allow it; raised before the connection is accepted.
    """
    if target.part != "exec":
        raise _refusal(target.part)
    offered = socket.scope.get("subprotocols") or ()
    chosen = next((name for name in PROTOCOLS if name in offered), None)
    if chosen is None:
        raise problems.bad_request(f"unable to upgrade: unable to negotiate protocol: client supports {list(offered)}")
    text = ""
    ended: JsonObject = {"metadata": {}, "status": "Success"}
    try:
        text = _output_of(cluster, socket.query_params, target)
    except _NotStarted as failure:
        ended |= {"status": "Failure", "message": str(failure), "reason": "InternalError", "code": 500}
    await socket.accept(subprotocol=chosen)
    if text:
        await socket.send_bytes(_STDOUT + text.encode())
    await socket.send_bytes(_STATUS + json.dumps(ended).encode())
    await socket.close()
