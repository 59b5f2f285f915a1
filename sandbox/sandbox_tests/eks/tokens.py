"""Bearer tokens of EKS clusters, made as clients make them."""

from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING

import httpx
from botocore.credentials import Credentials
from botocore.hooks import HierarchicalEmitter
from botocore.model import ServiceId
from botocore.signers import RequestSigner

from gpukube_sandbox.eks.wire.identity import access_key
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from sandbox_tests.eks.aws import Aws


def presigned(secret: str, cluster: str = NAME, account: str = ACCOUNT, expires_s: int = 60, host: str = "") -> str:
    """An address of GetCallerIdentity, signed for a cluster (aws-cli customizations/eks/get_token.py)."""
    credentials = Credentials(access_key(account), secret)
    emitter = HierarchicalEmitter()  # the signer holds it weakly
    signer = RequestSigner(ServiceId("sts"), REGION, "sts", "v4", credentials, emitter)
    base = host or f"https://sts.{REGION}.amazonaws.com"
    request = {
        "method": "GET",
        "url": f"{base}/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": cluster},
        "context": {},
    }
    return str(signer.generate_presigned_url(request, region_name=REGION, expires_in=expires_s, operation_name=""))


def encoded(address: str) -> str:
    """A token of an address."""
    return "k8s-aws-v1." + base64.urlsafe_b64encode(address.encode()).decode().rstrip("=")


def bearer(secret: str, cluster: str = NAME, account: str = ACCOUNT) -> str:
    """A token for a cluster."""
    return encoded(presigned(secret, cluster, account))


def kube_client(aws: Aws) -> httpx.Client:
    """A client of the cluster's Kubernetes API, with a presigned token; the caller closes it."""
    cluster = aws.eks.describe_cluster(name=NAME)["cluster"]
    trusted = ssl.create_default_context(cadata=base64.b64decode(cluster["certificateAuthority"]["data"]).decode())
    headers = {"Authorization": f"Bearer {bearer(aws.info.secret)}"}
    return httpx.Client(
        base_url=cluster["endpoint"], verify=trusted, trust_env=False, headers=headers, timeout=PATIENCE_S
    )
