"""A node group of the emulated EKS on a real control plane, reached with a presigned token."""

from __future__ import annotations

import ssl
from base64 import b64decode
from typing import TYPE_CHECKING

import httpx
import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.kube.controlplane import find_assets
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws
from sandbox_tests.eks.tokens import bearer
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(find_assets() is None, reason="KUBEBUILDER_ASSETS names no etcd and kube-apiserver"),
]


def test_cluster_when_the_control_plane_is_real_then_it_takes_presigned_tokens(tmp_path: Path) -> None:
    info = daemon.up(tmp_path / "sandbox", 500)
    try:
        made = daemon.add_eks_cluster(info, ACCOUNT, REGION, NAME)
        assert not str(made["kubeUrl"]).startswith(info.kube_url)
        aws = Aws(info)
        aws.create("gpu", labels={"team": "vision"})
        cluster = aws.eks.describe_cluster(name=NAME)["cluster"]
        trusted = ssl.create_default_context(cadata=b64decode(cluster["certificateAuthority"]["data"]).decode())
        with httpx.Client(base_url=cluster["endpoint"], verify=trusted, trust_env=False, timeout=PATIENCE_S) as kube:
            query = {"labelSelector": "eks.amazonaws.com/nodegroup=gpu"}

            def ask(token: str) -> httpx.Response:
                return kube.get("/api/v1/nodes", params=query, headers={"Authorization": f"Bearer {token}"})

            wait_for(lambda: len(ask(bearer(info.secret)).json()["items"]) == 1)
            assert ask(bearer(info.secret)).json()["items"][0]["metadata"]["labels"]["team"] == "vision"
            assert ask(bearer(info.secret, cluster="other")).status_code == 401
            assert ask(bearer("x" * 40)).status_code == 401
        assert "Traceback" not in (tmp_path / "sandbox" / daemon.LOG_FILE).read_text()
    finally:
        daemon.down(tmp_path / "sandbox")
