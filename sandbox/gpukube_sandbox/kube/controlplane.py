"""A real control plane on loopback: etcd and kube-apiserver, plus scheduler and controller-manager if present.

In scope: finding, starting, and stopping the programs. Out of scope: API clients (`remote`), nodes.

Flags: docs reference/command-line-tools-reference; tested with versions 1.20 and 1.36.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from gpukube_sandbox.tls import make_tls

if TYPE_CHECKING:
    from collections.abc import Mapping

_NEEDED = ("etcd", "kube-apiserver")
_CONTROLLERS = (
    "serviceaccount",
    "namespace",
    "daemonset",
    "deployment",
    "replicaset",
    "replicationcontroller",
    "statefulset",
    "disruption",
    "resourcequota",
    "resourceclaim-controller",
    "garbagecollector",
    "job",
    "root-ca-cert-publisher",
)
_WITH_PORT_FLAG = (1, 20)
"""Last version whose scheduler and controller-manager also listen without TLS by default."""
_START_S = 180.0
_STARTS = 3
_TAKEN = "address already in use"


class _PortTaken(RuntimeError):
    """Another process took a port between its selection and its use."""


def find_assets(environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the directory in KUBEBUILDER_ASSETS; None if it is unset or lacks etcd or kube-apiserver."""
    named = (os.environ if environ is None else environ).get("KUBEBUILDER_ASSETS", "")
    directory = Path(named)
    return directory if named and all(os.access(directory / name, os.X_OK) for name in _NEEDED) else None


class ControlPlane:
    """The processes of one control plane; stopping it deletes its data.

    Args:
        assets: Directory of the programs.
        token: Bearer token with all rights.
        reviewer: Address and certificate authority of the TokenReview webhook for every other token, if any.

    Attributes:
        url: URL of the API server, once started.
        ca_pem: Certificate of its authority, once started.
        version: Kubernetes version, once started.
        tolerates_extended_resources: Enables the admission plugin ExtendedResourceToleration; set it before `start`.
    """

    def __init__(self, assets: Path, token: str, reviewer: tuple[str, str] | None = None) -> None:
        self._assets = assets
        self._token = token
        self._reviewer = reviewer
        self._directory = Path()
        self._processes: list[asyncio.subprocess.Process] = []
        self.url = ""
        self.ca_pem = ""
        self.version = ""
        self.tolerates_extended_resources = False

    def has(self, program: str) -> bool:
        """Return whether a program is among the assets."""
        return os.access(self._assets / program, os.X_OK)

    async def start(self) -> None:
        """Start everything and wait until the API answers.

        Raises:
            RuntimeError: It did not start within three minutes, or a process exited; includes the end of its log.
        """
        for left in reversed(range(_STARTS)):
            try:
                await self._start()
            except _PortTaken:
                await self.stop()
                if not left:
                    raise
            except BaseException:
                await self.stop()
                raise
            else:
                return

    async def _start(self) -> None:
        self._directory = await asyncio.to_thread(lambda: Path(tempfile.mkdtemp(prefix="gpukube-kube-")))
        await asyncio.to_thread(self._write_files)
        self.version = await self._read_version()
        etcd, peer, api = _free_ports(3)
        self.url = f"https://127.0.0.1:{api}"
        await self._start_etcd(etcd, peer)
        await self._start_api(etcd, api)
        await self._wait_until_ready()
        await self._start_managers()

    async def stop(self) -> None:
        """Kill every process immediately and remove the data."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        for process in self._processes:
            await process.wait()
        self._processes.clear()
        await asyncio.to_thread(shutil.rmtree, self._directory, ignore_errors=True)

    def _write_files(self) -> None:
        tls = make_tls(self._directory)
        self.ca_pem = tls.ca.read_text()
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        self._write("sa.key", key.private_bytes(pem, serialization.PrivateFormat.TraditionalOpenSSL, plain))
        self._write("sa.pub", key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
        self._write("tokens.csv", f'{self._token},admin,admin,"system:masters"\n'.encode())

    def _write(self, name: str, content: bytes) -> None:
        path = self._directory / name
        path.touch(0o600)
        path.write_bytes(content)

    async def _read_version(self) -> str:
        command = [str(self._assets / "kube-apiserver"), "--version"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        printed, _ = await process.communicate()
        found = re.search(rb"v(\d+\.\d+\.\d+)", printed)
        return found[1].decode() if found else ""

    async def _spawn(self, program: str, *flags: str) -> None:
        log = (self._directory / f"{program}.log").open("wb")
        with log:
            # With setpriv (util-linux) the kernel kills the program when this process dies.
            found = shutil.which("setpriv")
            process = await asyncio.create_subprocess_exec(
                *([found, "--pdeathsig", "KILL"] if found else []),
                str(self._assets / program),
                *flags,
                stdout=log,
                stderr=log,
                stdin=asyncio.subprocess.DEVNULL,
            )
        self._processes.append(process)

    async def _start_etcd(self, port: int, peer: int) -> None:
        client, other = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
        await self._spawn(
            "etcd",
            f"--data-dir={self._directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={other}",
            f"--initial-advertise-peer-urls={other}",
            f"--initial-cluster=default={other}",
            "--unsafe-no-fsync",
        )

    async def _start_api(self, etcd: int, port: int) -> None:
        directory = self._directory
        await self._spawn(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={directory}",
            f"--tls-cert-file={directory / 'server.pem'}",
            f"--tls-private-key-file={directory / 'server.key'}",
            f"--token-auth-file={directory / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={directory / 'sa.pub'}",
            f"--service-account-signing-key-file={directory / 'sa.key'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",  # the device plugin's pods are privileged
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=TaintNodesByCondition",  # simulated nodes set their own not-ready taint
            *self._review_flags(),
            *(["--enable-admission-plugins=ExtendedResourceToleration"] if self.tolerates_extended_resources else []),
        )

    def _review_flags(self) -> list[str]:
        if self._reviewer is None:
            return []
        address, authority = self._reviewer
        encoded = base64.b64encode(authority.encode()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "r", "cluster": {"server": address, "certificate-authority-data": encoded}}],
            "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "r", "context": {"cluster": "r", "user": "a"}}],
            "current-context": "r",
        }
        self._write("reviewer", json.dumps(config).encode())
        return [
            f"--authentication-token-webhook-config-file={self._directory / 'reviewer'}",
            "--authentication-token-webhook-version=v1",
            "--authentication-token-webhook-cache-ttl=0s",
        ]

    async def _start_managers(self) -> None:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "c", "cluster": {"server": self.url, "certificate-authority": str(self._directory / "ca.pem")}}
            ],
            "users": [{"name": "u", "user": {"token": self._token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "c",
        }
        await asyncio.to_thread(self._write, "kubeconfig", json.dumps(config).encode())
        old = tuple(map(int, self.version.split(".")[:2])) <= _WITH_PORT_FLAG
        # Port 0 disables serving: no client needs it, and they would exit unnoticed if another process had the port.
        common = [f"--kubeconfig={self._directory / 'kubeconfig'}", "--leader-elect=false", "--secure-port=0"]
        common += ["--port=0"] if old else []
        if self.has("kube-scheduler"):
            await self._spawn("kube-scheduler", *common)
        if self.has("kube-controller-manager"):
            controllers = [*_CONTROLLERS, *(["serviceaccount-token"] if old else [])]
            await self._spawn(
                "kube-controller-manager",
                *common,
                f"--controllers={','.join(controllers)}",
                f"--service-account-private-key-file={self._directory / 'sa.key'}",
                f"--root-ca-file={self._directory / 'ca.pem'}",
            )

    async def _wait_until_ready(self) -> None:
        import httpx  # noqa: PLC0415 -- imports rich and pygments, a quarter of the sandbox's start time

        headers = {"authorization": f"Bearer {self._token}"}
        ends = asyncio.get_running_loop().time() + _START_S
        async with httpx.AsyncClient(
            verify=ssl.create_default_context(cadata=self.ca_pem), headers=headers, trust_env=False
        ) as client:
            while asyncio.get_running_loop().time() < ends:
                if any(process.returncode is not None for process in self._processes):
                    break
                with contextlib.suppress(httpx.TransportError):
                    if (await client.get(f"{self.url}/readyz")).is_success:
                        return
                await asyncio.sleep(0.1)
        etcd, log = [await asyncio.to_thread((self._directory / f"{name}.log").read_text) for name in _NEEDED]
        message = f"kube-apiserver did not come up; its log ends with: {log[-2000:]}"
        raise (_PortTaken if _TAKEN in etcd + log else RuntimeError)(message)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [int(item.getsockname()[1]) for item in sockets]
