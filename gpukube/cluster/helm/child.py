"""The child process with the embedded Helm: requests and answers as lines of JSON on standard input.

Standard input is a Unix socket. Open files sent with a request stay open while it runs: the lock of a run's mark. In
scope: calls of helm_python, and no import of gpukube, so that it starts as a bare script. Out of scope: decisions.

Why a process: the library sets no time limit on HTTP, so a server that accepts a connection and never answers blocks a
call forever; the library's cancel has no effect then, and after a fork it hangs. Signals reach Python only after a call
returns.
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

_OVERDUE: Final = 75  # EX_TEMPFAIL of sysexits.h: the starter, which should have ended it, is gone


class Request(TypedDict, total=False):
    """A request of the starter; which keys apply depends on the verb."""

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
"""Copy of gpukube.cluster.names.FIELD_MANAGER, which this script does not import."""


def _set_program_name() -> None:
    """Set the program name to gpukube: Helm writes it into managedFields (helm.sh/helm v4 pkg/kube/client.go).

    It would be Python's name otherwise: `python3` on a laptop, `python` in an image, in conflict with each other. The
    library's Go runtime reads the process's arguments when it is loaded (runtime/runtime1.go, goargs).
    """
    # glibc's name for it; the library's wheel is for glibc only
    own = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "program_invocation_name").value
    if own and len(ctypes.string_at(own)) >= len(_MANAGER):
        ctypes.memmove(own, _MANAGER + b"\0", len(_MANAGER) + 1)


def main() -> None:
    """Answer one request after another, until the starter closes its end."""
    _set_program_name()
    channel = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # login helpers that Helm starts must not read requests
    import helm_python  # noqa: F401, PLC0415 -- takes 0.1 s and 64 MiB while the starter writes

    while (received := _receive(channel)) is not None:
        request, keeps = received
        # The starter ends this process at its deadline; if it is gone by then, this process ends itself.
        watchdog = threading.Timer(request["deadline_s"] + 5.0, os._exit, (_OVERDUE,))
        watchdog.daemon = True
        watchdog.start()
        answer = _answer(request)
        watchdog.cancel()
        for handle in keeps:
            os.close(handle)
        channel.sendall(json.dumps(answer).encode() + b"\n")
    os._exit(0)  # skip cleanup: the Go runtime's threads need none


def _receive(channel: socket.socket) -> tuple[Request, list[int]] | None:
    """Read one line, and the open files sent with it; None at the end."""
    line, keeps, _flags, _sender = socket.recv_fds(channel, 65536, 8, socket.MSG_CMSG_CLOEXEC)
    while line and not line.endswith(b"\n"):
        more = channel.recv(65536)
        line = line + more if more else b""
    return (json.loads(line), keeps) if line else None


def _answer(request: Request) -> dict[str, object]:
    import helm_python  # noqa: PLC0415 -- takes 0.1 s and 64 MiB, only in this process

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
    """Delete the kubeconfig here too: a killed parent cannot."""
    path = request.get("kubeconfig", "")
    if path and os.path.exists(path):  # noqa: PTH110 -- pathlib slows down the start
        os.unlink(path)  # noqa: PTH108 -- see above


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
    from helm_python import _native  # noqa: PLC0415 -- see above

    # The library's own functions lack disable_openapi_validation; the library's version is pinned exactly.
    options: dict[str, object] = {"namespace": request["namespace"], "timeout_seconds": request["timeout_s"]}
    if not request["installed"]:
        options["skip_crds"] = (
            True  # the starter applies them: Helm 4 would take over fields of CRDs that others created
        )
    if request["labels"]:
        options["labels"] = request["labels"]
    if request["dry_run"]:
        # A dry run sends no object, and the server validates fields on its own (since Kubernetes 1.25): Helm would read
        # the schema of each API group, a megabyte of JSON, only for that. A change has the server's strict validation.
        options |= {"dry_run": request["dry_run"], "disable_openapi_validation": True}
    if request["installed"]:
        options |= {"reset_values": True, "max_history": request["history"]}
    with helm_python.Config(
        kubeconfig_path=request["kubeconfig"], namespace=request["namespace"], storage_driver="secret"
    ) as config:
        release = _native.call_string(
            "helm_upgrade" if request["installed"] else "helm_install",
            config._raw(),  # noqa: SLF001 -- see options
            0,  # the current context
            0,
            request["chart"],  # the path, not a Chart: rendering modifies a Chart object
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
