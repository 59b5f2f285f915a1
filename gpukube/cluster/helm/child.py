"""The child process that holds the embedded Helm: requests and answers, a line of JSON each, on standard input.

Standard input is a Unix socket. Open files that come with a request are held while it is worked on: the lock of a run's
mark. In scope: calls of helm_python, and nothing of gpukube, so that it starts as a bare script. Out of scope:
decisions.

Why a process: the library sets no time limit on HTTP, and a server that accepts and never answers holds a call for
ever; its cancel has no effect then, and after a fork it hangs. Signals reach Python only after a call returns.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable

_OVERDUE: Final = 75  # EX_TEMPFAIL of sysexits.h: whoever should have ended it is gone


class Request(TypedDict, total=False):
    """What the starter asks for; which keys count depends on the verb."""

    verb: str
    deadline_s: float
    timeout_s: int
    kubeconfig: str
    name: str
    namespace: str
    chart: str
    values: dict[str, object]
    installed: bool
    revision: int
    keep: bool
    dry_run: str
    history: int
    labels: dict[str, str]
    reference: str
    directory: str
    version: str
    repository: str
    logins: str
    plain_http: bool


_MANAGER: Final = b"gpukube"
"""As gpukube.cluster.names.FIELD_MANAGER, of which this script knows nothing."""


def _take_name() -> None:
    """Be called gpukube: Helm writes the name of its program into managedFields (helm.sh/helm v4 pkg/kube/client.go).

    That would be whatever Python is called: `python3` on a laptop, `python` in an image, in conflict with each other.
    The Go runtime in the library reads the arguments of the process when it is loaded (runtime/runtime1.go, goargs).
    """
    # glibc's name for it; the library's wheel is for glibc alone
    own = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "program_invocation_name").value
    if own and len(ctypes.string_at(own)) >= len(_MANAGER):
        ctypes.memmove(own, _MANAGER + b"\0", len(_MANAGER) + 1)


def main() -> None:
    """Answer one request after the other, until the starter has closed its end."""
    _take_name()
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # whatever Helm starts, to log in, reads no request
    import helm_python  # noqa: F401, PLC0415 -- 0.1 s and 64 MiB, while the starter writes

    while (received := _receive(channel)) is not None:
        request, keeps = received
        # The starter ends us at its deadline; should it be gone by then, we end ourselves.
        watchdog = threading.Timer(request["deadline_s"] + 5.0, os._exit, (_OVERDUE,))
        watchdog.daemon = True
        watchdog.start()
        answer = _answer(request)
        watchdog.cancel()
        for handle in keeps:
            os.close(handle)
        channel.sendall(json.dumps(answer).encode() + b"\n")
    os._exit(0)  # the Go runtime's threads need no farewell


def _receive(channel: socket.socket) -> tuple[Request, list[int]] | None:
    """Read one line, and the open files that came with it; None at the end."""
    line, keeps, _flags, _sender = socket.recv_fds(channel, 65536, 8, socket.MSG_CMSG_CLOEXEC)
    while line and not line.endswith(b"\n"):
        more = channel.recv(65536)
        line = line + more if more else b""
    return (json.loads(line), keeps) if line else None


def _answer(request: Request) -> dict[str, object]:
    import helm_python  # noqa: PLC0415 -- 0.1 s and 64 MiB, only in this process

    verbs: dict[str, Callable[[Request], dict[str, object]]] = {
        "version": lambda _request: {},
        "pull": _pull,
        "upgrade": _upgrade,
        "rollback": _rollback,
        "uninstall": _uninstall,
    }
    try:
        return {**verbs[request["verb"]](request), "helm": str(helm_python.helm_sdk_version())}
    except helm_python.HelmError as error:
        return {"error": str(getattr(error, "detail", "") or error), "kind": type(error).__name__}
    finally:
        _forget_kubeconfig(request)


def _forget_kubeconfig(request: Request) -> None:
    """Remove the kubeconfig from here too: a parent that was killed cannot."""
    path = request.get("kubeconfig", "")
    if path and os.path.exists(path):  # noqa: PTH110 -- pathlib costs start-up time here
        os.unlink(path)  # noqa: PTH108 -- as above


def _pull(request: Request) -> dict[str, object]:
    import helm_python  # noqa: PLC0415 -- see _answer

    logins, plain_http = request["logins"], request["plain_http"]
    client = helm_python.RegistryClient(plain_http=plain_http, credentials_file=logins) if logins else None
    helm_python.pull(
        request["reference"],
        client=client,
        destination=request["directory"],
        version=request["version"] or None,
        repo_url=request["repository"] or None,
        plain_http=plain_http,
    )
    return {}


def _upgrade(request: Request) -> dict[str, object]:
    import helm_python  # noqa: PLC0415 -- see _answer
    from helm_python import _native  # noqa: PLC0415 -- as above

    # The library's own functions have no parameter for disable_openapi_validation; the version is pinned to the digit.
    options: dict[str, object] = {"namespace": request["namespace"], "timeout_seconds": request["timeout_s"]}
    if not request["installed"]:
        options["skip_crds"] = True  # they are the starter's: Helm 4 would take fields of types that others made
    if request["labels"]:
        options["labels"] = request["labels"]
    if request["dry_run"]:
        # A trial sends no object, and the server checks fields by itself (since Kubernetes 1.25): Helm would read the
        # description of each API group, a megabyte of JSON, to learn only that. A change has the server's strict check.
        options |= {"dry_run": request["dry_run"], "disable_openapi_validation": True}
    if request["installed"]:
        options |= {"reset_values": True, "max_history": request["history"]}
    with helm_python.Config(
        kubeconfig_path=request["kubeconfig"], namespace=request["namespace"], storage_driver="secret"
    ) as config:
        release = _native.call_string(
            "helm_upgrade" if request["installed"] else "helm_install",
            config._raw(),  # noqa: SLF001 -- see options
            0,  # no context
            0,
            request["chart"],  # the path, not a Chart: rendering a Chart object changes it for good
            request["name"],
            json.dumps(request["values"]),
            json.dumps(options),
        )
    return {"release": json.loads(release)}


def _rollback(request: Request) -> dict[str, object]:
    import helm_python  # noqa: PLC0415 -- see _answer

    with helm_python.Config(
        kubeconfig_path=request["kubeconfig"], namespace=request["namespace"], storage_driver="secret"
    ) as config:
        config.rollback(request["name"], version=request["revision"], timeout=request["timeout_s"])
    return {}


def _uninstall(request: Request) -> dict[str, object]:
    import helm_python  # noqa: PLC0415 -- see _answer

    with helm_python.Config(
        kubeconfig_path=request["kubeconfig"], namespace=request["namespace"], storage_driver="secret"
    ) as config:
        config.uninstall(
            request["name"], timeout=request["timeout_s"], ignore_not_found=True, keep_history=request["keep"]
        )
    return {}


if __name__ == "__main__":
    main()
