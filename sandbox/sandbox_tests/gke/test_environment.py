"""The way in for official clients: environment, dummy credentials, kubeconfig; and gcloud itself where it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon, environment
from sandbox_tests.gke.clients import CLUSTER, NAME, PROJECT, ZONE, add_cluster

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo


def _clean(info: SandboxInfo) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG"}}
    return kept | environment.env(info)


def test_env_when_gke_is_used_then_its_endpoints_and_files_are_there(sandbox: SandboxInfo) -> None:
    add_cluster(sandbox)
    found = environment.env(sandbox)
    assert found["GPUKUBE_GKE_ENDPOINT"] == sandbox.gke_url
    assert found["GPUKUBE_GKE_GRPC"] == sandbox.gke_grpc
    assert found["CLOUDSDK_CORE_PROJECT"] == PROJECT
    assert found["CLOUDSDK_API_ENDPOINT_OVERRIDES_CONTAINER"] == f"{sandbox.gke_url}/"
    assert found["CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"] == f"{sandbox.gke_url}/compute/v1/"
    assert Path(found["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"]).read_text() == sandbox.secret
    assert Path(found["GOOGLE_APPLICATION_CREDENTIALS"]).stat().st_mode & 0o077 == 0


def test_kubeconfig_when_gke_is_used_then_a_context_as_gcloud_names_it(sandbox: SandboxInfo) -> None:
    add_cluster(sandbox)
    document = environment.kubeconfig(sandbox)["kubeconfig"]
    assert isinstance(document, dict)
    name = f"gke_{PROJECT}_{ZONE}_{NAME}"
    assert [one["name"] for one in document["contexts"]] == [name]
    assert document["current-context"] == name
    assert document["users"][0]["user"] == {"token": sandbox.secret}


def test_google_auth_when_it_finds_the_credentials_then_its_real_flow_gives_the_dummy_token(
    sandbox: SandboxInfo,
) -> None:
    add_cluster(sandbox)
    code = (
        "import google.auth, google.auth.transport.requests as t\n"
        "c, _ = google.auth.default(scopes=['https://www.googleapis.com/auth/cloud-platform'])\n"
        "c.refresh(t.Request())\nprint(c.token)"
    )
    run = subprocess.run([sys.executable, "-c", code], env=_clean(sandbox), capture_output=True, text=True, check=False)
    assert run.stdout.strip() == sandbox.secret, run.stderr


def test_start_when_only_aks_is_used_then_nothing_of_google_is_loaded() -> None:
    code = (
        "import sys, gpukube_sandbox.server, gpukube_sandbox.daemon, gpukube_sandbox.environment\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('google', 'grpc', 'proto')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"colour": 1}, "invalid option 'colour'"), ({"cpuPool": "yes"}, "invalid option 'cpuPool' = 'yes'")],
)
def test_control_when_an_option_is_none_then_refused(
    sandbox: SandboxInfo, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(daemon.SandboxError, match=reason):
        daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME, options=options)


def test_control_when_the_cluster_is_there_then_it_stays(sandbox: SandboxInfo) -> None:
    first = daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME)
    again = daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME)
    assert (first["created"], again["created"]) == (True, False)
    assert first["id"] == again["id"] == CLUSTER
