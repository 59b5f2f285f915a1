"""State file and lock of a running sandbox. Standard library only.

In scope: `SandboxInfo`, reading and writing it, distinguishing a live process from a stale file. Out of scope:
starting or stopping (`daemon`).

The process holds a lock on `daemon.lock` for its whole lifetime, so a reused process id causes no confusion.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FILE = "sandbox.json"
_CLUSTERS = "clusters"
_LIFE_LOCK = "daemon.lock"
_BETWEEN_TRIES_S = 0.02
_KEYS = ("ca.pem", "server.pem", "server.key")

CLIENT_FILES = "sandbox-clients"
"""Directory below the state directory for files of the official clients. The sandbox deletes the whole directory, so
its name must not match a user's directory, whatever the state directory is."""


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """How to reach a running sandbox.

    Attributes:
        state_dir: Directory of state, certificates and log.
        arm_url: ARM over http, for the SDK (`GPUKUBE_AKS_ENDPOINT`).
        arm_tls_url: ARM over https, for `az`.
        kube_url: Kubernetes APIs, without the path of a cluster.
        charts_url: Chart repository.
        ca_path: Certificate authority of the two https ports.
        aws_url: EKS, EC2, STS, IAM and Auto Scaling over http (`AWS_ENDPOINT_URL`).
        gke_url: GKE over http, for REST clients (`GPUKUBE_GKE_ENDPOINT`).
        gke_grpc: GKE over gRPC without TLS, "127.0.0.1:40000".
        control_url: Control API.
        control_token: Bearer token of the control API.
        speed: Sandbox seconds per wall second at the start.
        started: Wall clock, seconds since the Unix epoch.
        sandbox_id: New at each start (`GPUKUBE_SANDBOX_ID`).
        idle_timeout_s: Wall seconds without a request after which it stops; 0 = never.
        version: Version of the gpukube that started it; "" if unknown.
        secret: Secret that the clouds require: bearer token of ARM and GKE, secret of all AWS keys.
    """

    pid: int
    state_dir: str
    arm_url: str
    arm_tls_url: str
    kube_url: str
    charts_url: str
    ca_path: str
    control_url: str
    control_token: str
    speed: float
    started: float
    aws_url: str = ""
    gke_url: str = ""
    gke_grpc: str = ""
    sandbox_id: str = ""
    idle_timeout_s: float = 0.0
    version: str = ""
    secret: str = ""

    @property
    def endpoints(self) -> dict[str, str]:
        """Provider -> address of its emulated cloud, as in GPUKUBE_*_ENDPOINT."""
        return {"aks": self.arm_url, "eks": self.aws_url, "gke": self.gke_url}

    def __repr__(self) -> str:
        """Omit secrets."""
        return f"SandboxInfo(pid={self.pid}, state_dir={self.state_dir!r}, arm_url={self.arm_url!r})"


@dataclass(frozen=True, slots=True)
class Loss:
    """The content of a sandbox that was killed, or whose machine stopped.

    Attributes:
        last_seen: Wall clock, seconds since the Unix epoch, up to some seconds before it stopped.
        clusters: Clusters, such as "eks train".
    """

    last_seen: float
    clusters: tuple[str, ...]

    def __str__(self) -> str:
        """Describe it in one line."""
        moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.last_seen))
        had = f"; lost with it: {', '.join(self.clusters)}" if self.clusters else "; it had no clusters"
        return f"the last sandbox was killed (last seen {moment}){had}"


def default_state_dir() -> Path:
    """Return this user's sandbox directory: GPUKUBE_SANDBOX_STATE, or one below the user's state directory."""
    from platformdirs import user_state_path  # noqa: PLC0415 - not needed if the variable is set

    chosen = os.environ.get("GPUKUBE_SANDBOX_STATE")
    return Path(chosen) if chosen else user_state_path("gpukube") / "sandbox"


def save_info(info: SandboxInfo) -> None:
    """Write the state file, readable by its owner only."""
    _write(Path(info.state_dir) / _FILE, json.dumps(asdict(info)))


def save_clusters(state_dir: Path, clusters: Sequence[str]) -> None:
    """Record the current clusters for `find_loss`."""
    _write(state_dir / _CLUSTERS, "\n".join(clusters))


def record_seen(state_dir: Path) -> None:
    """Record that the sandbox is still running, for `find_loss`."""
    with contextlib.suppress(FileNotFoundError):
        os.utime(state_dir / _FILE)


def find_loss(state_dir: Path) -> Loss | None:
    """Return what was lost when the last sandbox of this directory was killed; None once another one is started."""
    if is_running(state_dir):
        return None
    try:
        last_seen = (state_dir / _FILE).stat().st_mtime
    except OSError:
        return None
    try:
        clusters = (state_dir / _CLUSTERS).read_text().splitlines()
    except OSError:
        clusters = []
    return Loss(last_seen, tuple(clusters))


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    draft.replace(path)


def load_info(state_dir: Path) -> SandboxInfo | None:
    """Return the state of the running sandbox; None if there is none, even if a stale or broken file exists."""
    if not is_running(state_dir):
        return None
    try:
        saved = json.loads((state_dir / _FILE).read_text())
        # A newer version may have written more fields.
        return SandboxInfo(**{item.name: saved[item.name] for item in fields(SandboxInfo) if item.name in saved})
    except (OSError, ValueError, TypeError):
        return None  # starting, or just stopped


def remove_info(state_dir: Path) -> None:
    """Delete the state files, if any."""
    for name in (_FILE, _CLUSTERS):
        (state_dir / name).unlink(missing_ok=True)


def remove_credentials(state_dir: Path) -> None:
    """Delete keys, certificates, and the clients' files, if any; the log stays."""
    for name in _KEYS:
        (state_dir / name).unlink(missing_ok=True)
    shutil.rmtree(state_dir / CLIENT_FILES, ignore_errors=True)


def is_running(state_dir: Path) -> bool:
    """Return whether a process holds the life lock of a directory."""
    try:
        handle = os.open(state_dir / _LIFE_LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def hold_life_lock(state_dir: Path) -> int | None:
    """Hold the life lock of a directory until this process exits; return None if another process has it.

    A check (`is_running`) shares the lock for a moment, or longer if the machine stalls, so wait for it.
    """
    handle = os.open(state_dir / _LIFE_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    while not _try_lock(handle, fcntl.LOCK_EX):
        if not _try_lock(handle, fcntl.LOCK_SH):
            os.close(handle)
            return None
        fcntl.flock(handle, fcntl.LOCK_UN)
        time.sleep(_BETWEEN_TRIES_S)
    return handle


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def locked(state_dir: Path) -> Iterator[None]:
    """Block other starts and stops in this directory."""
    handle = os.open(state_dir / "starting.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
