"""The stage of the chaos tests: gpukube processes, the sandbox they run against, and what must be true in the end."""

from __future__ import annotations

import base64
import gzip
import json
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import httpx
import yaml

from gpukube.errors import ExitCode
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import made_once
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from gpukube_sandbox.daemon import SandboxInfo

EXAMPLES = Path(__file__).parents[2] / "examples"
MIG = EXAMPLES / "aks-mig-single.yaml"
FORGE = Path(__file__).with_name("forge.py")
NAMESPACE = "gpukube-system"
LONGEST_S = 240.0
"""For a process that ends by itself: it does everything that is asked of it, on a machine that stalls now and then."""
HELM_AGENT = "Helm"
MARK = "gpukube.io/"
THEIRS = "theirs"
KINDS = (
    "apis/apps/v1/daemonsets",
    "apis/apps/v1/deployments",
    "api/v1/configmaps",
    "api/v1/serviceaccounts",
    "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "apis/rbac.authorization.k8s.io/v1/roles",
    "apis/rbac.authorization.k8s.io/v1/rolebindings",
)
"""What the chart makes."""

Json = dict[str, object]


@dataclass(frozen=True)
class Ended:
    """How a process ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Both streams."""
        return f"exit {self.code}\n{self.out}\n{self.err}"

    @property
    def devices(self) -> dict[str, int]:
        """Proven devices of all pools, of a report in JSON."""
        found: dict[str, int] = {}
        for cluster in json.loads(self.out)["clusters"]:
            for pool in cluster["pools"]:
                if pool["proof"] and pool["proof"]["status"] == "proven":
                    for name, count in pool["proof"]["allocatable"].items():
                        found[name] = found.get(name, 0) + count
        return found


@dataclass(frozen=True)
class NodeSeen:
    """A node as the cluster shows it: taints as key=value:Effect, and how many nvidia.com/gpu can be had."""

    labels: dict[str, str]
    taints: tuple[str, ...]
    devices: int
    kubelet: str


class Forge:
    """The process that gpukube processes are forked from; one per session."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(FORGE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._pids: queue.Queue[int] = queue.Queue()
        self.codes: dict[int, int] = {}
        self._told = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, argv: Sequence[str], environ: dict[str, str], out: Path, err: Path, *, cwd: str = ".") -> int:
        """Start a process; gives its id."""
        order = {"argv": list(argv), "env": environ, "cwd": cwd, "out": str(out), "err": str(err)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._pids.get(timeout=LONGEST_S)

    def wait_for_end(self, pid: int) -> bool:
        """Wait until a process has ended; False when it goes on for too long."""
        with self._told:
            return self._told.wait_for(lambda: pid in self.codes, LONGEST_S)

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(LONGEST_S)
        self._reader.join(LONGEST_S)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            with self._told:
                if "code" in answer:
                    self.codes[answer["pid"]] = answer["code"]
                    self._told.notify_all()
                else:
                    self.codes.pop(answer["pid"], None)  # process ids come again
                    self._pids.put(answer["pid"])


class Started:
    """A running gpukube."""

    def __init__(self, forge: Forge, pid: int, out: Path, err: Path) -> None:
        self.pid = pid
        self._forge = forge
        self._out, self._err = out, err

    @property
    def is_running(self) -> bool:
        """Whether it has not finished."""
        return self.pid not in self._forge.codes

    @property
    def said(self) -> str:
        """What it has written to standard error so far."""
        return self._err.read_text() if self._err.exists() else ""

    def wait(self) -> Ended:
        """Wait for its end."""
        assert self._forge.wait_for_end(self.pid), f"still running: {self.said}"
        return Ended(self._forge.codes[self.pid], self._out.read_text(), self._err.read_text())

    def freeze(self) -> None:
        """SIGSTOP the process: it waits for as long as others need."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self, *, with_children: bool) -> None:
        """SIGKILL the process, or it and all it started, as the end of a machine would."""
        doomed = [self.pid, *(descendants(self.pid) if with_children else ())]
        for pid in doomed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.wait()
        # A process that was killed gives its memory back before its connections: until then a request of it may go on.
        wait_for(lambda: not any(is_alive(pid) for pid in doomed), lambda: f"still there: {doomed}")


def is_alive(pid: int) -> bool:
    """Whether any thread of a process lives: its first one may have ended before the others, which hold its files."""
    states: list[str] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False
    for task in tasks:
        with suppress(OSError):  # ended while we look
            states.append((task / "stat").read_text().rpartition(")")[2].split()[0])
    return any(state not in ("Z", "X") for state in states)


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: list[int] = []
    left = [pid]
    while left:
        below = parents.get(left.pop(), [])
        found += below
        left += below
    return found


_made: dict[str, Ended] = {}
"""How creations ended whose outcome this worker's sandbox keeps."""


@dataclass
class Stage:
    """One test's sandbox and processes.

    Attributes:
        info: The sandbox, empty at the start.
        forge: Starts processes.
        home: HOME of the processes.
        tmp: Their temporary files.
        environ: Variables of theirs besides.
    """

    info: SandboxInfo
    forge: Forge
    home: Path
    tmp: Path
    environ: dict[str, str] = field(default_factory=dict)
    _count: int = field(default=0)
    _started: list[Started] = field(default_factory=list)

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Leave nothing running."""
        daemon.clear_faults(self.info)
        for started in self._started:
            if started.is_running:
                started.kill(with_children=True)

    # Processes

    def start(self, *words: str) -> Started:
        """Start `gpukube --sandbox ...`."""
        self._count += 1
        out, err = self.home / f"out-{self._count}", self.home / f"err-{self._count}"
        environ = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "GPUKUBE_SANDBOX_STATE": self.info.state_dir,
            "NO_COLOR": "1",
            **self.environ,
        }
        pid = self.forge.start(["--sandbox", *words], environ, out, err)
        started = Started(self.forge, pid, out, err)
        self._started.append(started)
        return started

    def run(self, *words: str) -> Ended:
        """Run it to its end."""
        return self.start(*words).wait()

    def create(self, spec: Path = MIG) -> Ended:
        """Run `pool create` to its end."""
        return self.run("pool", "create", "-f", str(spec), "-o", "json")

    def made(self, spec: Path = MIG) -> Ended:
        """Have its pools created, which went well; where an earlier test has had the same, that is put back."""

        def make() -> Ended:
            ended = self.create(spec)
            assert ended.code == 0, ended.said
            return ended

        return made_once(self.info, f"chaos {sorted(self.environ.items())} {spec.read_text()}", make, _made)

    def start_create(self, spec: Path = MIG) -> Started:
        """Start `pool create`."""
        return self.start("pool", "create", "-f", str(spec), "-o", "json")

    def kill_at_fault(self, started: Started, *, with_children: bool) -> bool:
        """Kill a process as soon as the fault has struck; False when it ended before."""
        wait_for(lambda: self.struck() or not started.is_running, lambda: started.said)
        if not self.struck():
            return False
        started.kill(with_children=with_children)
        daemon.clear_faults(self.info)
        return True

    def struck(self) -> bool:
        """Whether a fault has struck."""
        faults = daemon.call(self.info, "GET", "faults")["faults"]
        assert isinstance(faults, list)
        return any(fault["struck"] for fault in faults)

    # What the sandbox holds

    def pools(self) -> dict[str, int]:
        """Pools of the one cluster and how many machines each has."""
        (cluster,) = self.clusters()
        listed = cluster["pools"]
        assert isinstance(listed, list)
        return {pool["name"]: len(pool["nodes"]) for pool in listed}

    def objects(self) -> set[str]:
        """Everything that Helm has made, as path and name."""
        found: set[str] = set()
        with self._kube() as client:
            for kind in KINDS:
                answer = client.get(f"/{kind}", params={"labelSelector": "app.kubernetes.io/managed-by=Helm"})
                found |= {f"{kind}/{item['metadata']['name']}" for item in answer.raise_for_status().json()["items"]}
        return found

    def releases(self) -> list[tuple[str, int, str]]:
        """Revisions of all releases: name, revision, status."""
        with self._kube() as client:
            answer = client.get("/api/v1/secrets", params={"labelSelector": "owner=helm"}).raise_for_status().json()
        found = []
        for item in answer["items"]:
            record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(item["data"]["release"]))))
            found.append((record["name"], record["version"], record["info"]["status"]))
        return sorted(found)

    def config_keys(self) -> set[str]:
        """Keys of the plugin's configuration."""
        name = "gpukube-nvidia-device-plugin-configs"
        with self._kube() as client:
            answer = client.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}").raise_for_status().json()
        return set(answer["data"])

    def nodes(self) -> list[NodeSeen]:
        """All nodes of the cluster."""
        with self._kube() as client:
            items = client.get("/api/v1/nodes").raise_for_status().json()["items"]
        return [
            NodeSeen(
                item["metadata"]["labels"],
                tuple(sorted(f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in item["spec"].get("taints", ()))),
                int(item["status"]["allocatable"].get("nvidia.com/gpu", 0)),
                item["status"]["nodeInfo"]["kubeletVersion"],
            )
            for item in items
        ]

    def occupy(self, pool: str) -> None:
        """Have two pods of a Deployment run on nodes of a declared pool, and on no others."""
        container = {"name": "main", "image": "busybox", "command": ["sleep", "infinity"]}
        pod = {
            "nodeSelector": {"gpukube.io/pool": pool},
            "tolerations": [{"operator": "Exists", "effect": "NoSchedule", "key": "nvidia.com/gpu"}],
            "containers": [container],
        }
        labels = {"app": "guest"}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        with self._kube() as client:
            made = {"metadata": {"name": "guest"}, "spec": spec}
            client.post("/apis/apps/v1/namespaces/default/deployments", json=made).raise_for_status()

            def running() -> int:
                answer = client.get("/api/v1/namespaces/default/pods", params={"labelSelector": "app=guest"})
                return sum(item["status"]["phase"] == "Running" for item in answer.raise_for_status().json()["items"])

            wait_for(lambda: running() == 2)

    def lay_theirs(self) -> None:
        """Put an object of others into gpukube's namespace."""
        with self._kube() as client:
            made = {"metadata": {"name": THEIRS}, "data": {"a": "b"}}
            client.post(f"/api/v1/namespaces/{NAMESPACE}/configmaps", json=made).raise_for_status()

    def foreign(self) -> list[object]:
        """What is not ours, as it is stored: nodes without our marks, their pools as the cloud has them, an object."""
        with self._kube() as client:
            items = client.get("/api/v1/nodes").raise_for_status().json()["items"]
            theirs = client.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{THEIRS}").json()
            meta = theirs.get("metadata", {})
        nodes = [item for item in items if not any(key.startswith(MARK) for key in item["metadata"]["labels"])]
        names = {item["metadata"]["name"] for item in nodes}
        pools = [
            pool
            for cluster in self.clusters()
            for pool in cast("list[Json]", cluster["pools"])
            if names & {str(node) for node in cast("list[object]", pool["nodes"])}
        ]
        kept = ("name", "uid", "labels", "annotations")  # kubelets renew the rest all the time
        nodes = [[{key: node["metadata"].get(key) for key in kept}, node["spec"]] for node in nodes]
        return [*pools, *nodes, (meta.get("uid"), meta.get("resourceVersion"), theirs.get("data"))]

    def evictions(self, mark: int = 0) -> dict[str, int]:
        """By pod, evictions that reached the cluster after a request of the log."""
        paths = [
            str(one["path"])
            for one in daemon.requests_since(self.info, mark)
            if str(one["path"]).endswith("/eviction") and one["fault"] != "hang"
        ]
        return {path: paths.count(path) for path in paths}

    def clusters(self) -> list[Json]:
        """All clusters, as the status shows them."""
        found = daemon.status(self.info)["clusters"]
        assert isinstance(found, list)
        return found

    def _kube(self) -> httpx.Client:
        config = yaml.safe_load(str(daemon.call(self.info, "GET", "kubeconfig")["kubeconfig"]))
        return httpx.Client(
            base_url=config["clusters"][0]["cluster"]["server"],
            headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
            verify=ssl.create_default_context(cafile=self.info.ca_path),
            timeout=PATIENCE_S,
            trust_env=False,
        )

    # What must be true

    def require_polite(self, ended: Ended) -> None:
        """No traceback, no defect, no secret; and who failed says what to do."""
        assert "Traceback" not in ended.said, ended.said
        assert "error[defect]" not in ended.said, ended.said
        assert "Bearer " not in ended.said, ended.said
        if ended.code not in (0, -signal.SIGKILL):
            assert ended.code in (1, 3, 5, 6, 7), ended.said
            assert '"fix"' in ended.said or "fix: " in ended.said, ended.said

    def require_stopped(self, ended: Ended) -> None:
        """Ended by Ctrl-C: it says that the cloud keeps working, and how to go on."""
        assert ended.code == ExitCode.INTERRUPTED, ended.said
        assert "Traceback" not in ended.said, ended.said
        assert "stopped waiting; the cloud keeps working. To resume: gpukube " in ended.err, ended.said

    def require_converged(self, ended: Ended, objects: set[str]) -> None:
        """One pool of ours, one release, nothing more or less than an undisturbed run leaves, and it is proven."""
        self.require_polite(ended)
        assert ended.code == 0, ended.said
        assert ended.devices == {"nvidia.com/gpu": 56}, ended.said
        assert self.pools() == {"nodepool1": 1, "a100mig": 1}
        releases = self.releases()
        assert {name for name, _, _ in releases} == {"gpukube-nvidia-device-plugin"}
        assert [status for _, _, status in releases][-1] == "deployed", releases
        assert {status for _, _, status in releases[:-1]} <= {"superseded", "failed"}, releases
        assert self.objects() == objects
        self.require_private()

    def require_private(self) -> None:
        """What is left of a killed process can be read by its owner alone."""
        for path in [self.tmp, *self.tmp.rglob("*")]:
            if path.is_file():
                holders = [parent for parent in path.parents if parent.is_relative_to(self.tmp)]
                private = path.stat().st_mode & 0o077 == 0 or any(p.stat().st_mode & 0o077 == 0 for p in holders)
                assert private, path
