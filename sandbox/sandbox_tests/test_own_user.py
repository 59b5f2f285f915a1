"""Loopback is shared: who does not know the secret of this `up` is answered by no port of the sandbox."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.environment import env, kubeconfig
from sandbox_tests.aks.arm import API, CLUSTER_PATH, GROUP, NAME, SUBSCRIPTION
from sandbox_tests.eks.tokens import bearer
from sandbox_tests.gke.clients import CLUSTER, PROJECT, ZONE
from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

NOBODY: Final = 65534
REFUSED: Final = (400, 401, 403)
OTHER_TOKEN: Final = "another-token"
OTHER_SECRET: Final = "x" * 40


@pytest.fixture
def world(sandbox: SandboxInfo) -> SandboxInfo:
    """Bring the sandbox to a cluster of each cloud."""
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME)
    daemon.add_eks_cluster(sandbox, "111122223333", "us-east-1", NAME)
    daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME)
    return sandbox


def forged() -> str:
    """A token of the sandbox's Entra as anybody could write it: unsigned."""
    parts = ({"alg": "none", "typ": "JWT"}, {"iss": "https://sandbox.gpukube.invalid/", "aud": "x"})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join(encoded) + "."


def addresses(info: SandboxInfo) -> dict[str, tuple[str, str, dict[str, str]]]:
    """Doors of the sandbox: what -> method, address, form."""
    clusters: list[dict[str, Any]] = json.loads(json.dumps(kubeconfig(info)))["kubeconfig"]["clusters"]
    kube: dict[str, tuple[str, str, dict[str, str]]] = {
        f"kube {one['name']}": ("GET", f"{one['cluster']['server']}/api/v1/nodes", {}) for one in clusters
    }
    charts = info.charts_url.rpartition("/")[0]
    return {
        **kube,
        "arm": ("GET", f"{info.arm_url}{CLUSTER_PATH}?api-version={API}", {}),
        "arm, tls": ("GET", f"{info.arm_tls_url}{CLUSTER_PATH}?api-version={API}", {}),
        "an admin's kubeconfig": (
            "POST", f"{info.arm_url}{CLUSTER_PATH}/listClusterAdminCredential?api-version={API}", {},
        ),
        "managed identity": ("GET", f"{info.arm_url}/msi/token?resource=x", {}),
        "entra": ("POST", f"{info.arm_url}/tenant/oauth2/v2.0/token", {"client_secret": OTHER_SECRET}),
        "aws": ("GET", f"{info.aws_url}/clusters", {}),
        "gke": ("GET", f"{info.gke_url}/v1/{CLUSTER}", {}),
        "google's token": ("POST", f"{info.gke_url}/token", {"assertion": "sandbox"}),
        "compute": ("GET", f"{info.gke_url}/compute/v1/projects/{PROJECT}/zones", {}),
        "control": ("GET", f"{info.control_url}/status", {}),
        "charts": ("GET", f"{charts}/index.yaml", {}),
    }  # fmt: skip


@pytest.mark.parametrize(
    "token", ["", OTHER_TOKEN, forged(), bearer(OTHER_SECRET)], ids=["none", "another", "forged", "presigned"]
)
def test_doors_when_the_secret_is_not_known_then_none_opens(world: SandboxInfo, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "X-IDENTITY-HEADER": "sandbox"} if token else {}
    opened = {}
    with httpx.Client(verify=False, trust_env=False, timeout=PATIENCE_S, headers=headers) as client:  # noqa: S501
        for name, (method, address, form) in addresses(world).items():
            answer = client.request(method, address, data=form or None)
            if answer.status_code not in (*REFUSED, 404 if name == "charts" else 0):
                opened[name] = (answer.status_code, answer.text[:200])
    assert not opened


def test_secret_when_reset_then_the_same_and_when_up_again_then_another(tmp_path: Path) -> None:
    first = daemon.up(tmp_path / "state")
    try:
        daemon.reset(first)
        again = daemon.load_info(tmp_path / "state")
        assert again is not None
        assert again.secret == first.secret
        assert httpx.get(f"{first.arm_url}/subscriptions", headers=signed(first), trust_env=False).status_code == 400
    finally:
        daemon.down(tmp_path / "state")
    second = daemon.up(tmp_path / "state")
    daemon.down(tmp_path / "state")
    assert len({first.secret, second.secret, first.control_token, second.control_token}) == 4


def test_files_when_made_then_only_their_owner_may_read_them(world: SandboxInfo) -> None:
    env(world)
    state = Path(world.state_dir)
    told = [path for path in state.rglob("*") if path.is_file() and world.secret.encode() in path.read_bytes()]
    assert {path.name for path in told} >= {"sandbox.json", "credentials", "token", "kubeconfig"}
    assert not [path for path in told if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert world.secret not in repr(world)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_state_when_read_by_another_user_then_refused(world: SandboxInfo) -> None:
    code = f"import os; os.setuid({NOBODY}); open({str(Path(world.state_dir) / 'sandbox.json')!r}).read()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "PermissionError" in done.stderr
