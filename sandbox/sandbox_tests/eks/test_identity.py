"""Who is asking: keys, accounts, roles, presigned addresses and the bearer tokens of clusters."""

from __future__ import annotations

import base64
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import boto3
import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from gpukube_sandbox import daemon
from gpukube_sandbox.eks.wire.answers import AwsError
from gpukube_sandbox.eks.wire.identity import Signed, access_key, check_signed, is_bearer_for
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws
from sandbox_tests.eks.tokens import bearer, encoded, presigned
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.daemon import SandboxInfo


def test_caller_when_asked_then_the_account_of_the_key(aws: Aws) -> None:
    found = aws.client("sts").get_caller_identity()
    assert (found["Account"], found["Arn"]) == (ACCOUNT, f"arn:aws:iam::{ACCOUNT}:user/sandbox")


def test_role_when_assumed_then_the_account_of_the_role(aws: Aws) -> None:
    role = "arn:aws:iam::444455556666:role/deploy"
    given = aws.client("sts").assume_role(RoleArn=role, RoleSessionName="gpukube")["Credentials"]
    session = boto3.Session(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"], region_name=REGION)
    found = session.client("sts", endpoint_url=aws.info.aws_url).get_caller_identity()
    assert found["Arn"] == "arn:aws:sts::444455556666:assumed-role/deploy/gpukube"
    with pytest.raises(ClientError, match="ValidationError"):
        aws.client("sts").assume_role(RoleArn="arn:aws:s3:::some/thing/else", RoleSessionName="gpukube")


REFUSALS = {"eks": "UnrecognizedClientException", "sts": "InvalidClientTokenId", "ec2": "AuthFailure"}


@pytest.mark.parametrize(("service", "code"), REFUSALS.items())
def test_key_when_not_of_the_sandbox_then_refused_as_each_service_does(
    sandbox: SandboxInfo, service: str, code: str
) -> None:
    session = boto3.Session("AKIAIOSFODNN7EXAMPLE", "secret", region_name=REGION)
    once = Config(retries={"total_max_attempts": 1})
    client = session.client(service, endpoint_url=sandbox.aws_url, config=once)  # type: ignore[call-overload] # by name
    call = {"eks": "list_clusters", "sts": "get_caller_identity", "ec2": "describe_subnets"}[service]
    with pytest.raises(ClientError) as caught:
        getattr(client, call)()
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


SIGNATURES = {
    "eks": ("list_clusters", "InvalidSignatureException"),
    "pricing": ("get_products", "InvalidSignatureException"),
    "sts": ("get_caller_identity", "SignatureDoesNotMatch"),
    "iam": ("list_roles", "SignatureDoesNotMatch"),
    "autoscaling": ("describe_auto_scaling_groups", "SignatureDoesNotMatch"),
    "ec2": ("describe_subnets", "AuthFailure"),
}


@pytest.mark.parametrize("service", SIGNATURES)
def test_secret_when_it_is_wrong_then_refused_as_each_service_does(sandbox: SandboxInfo, service: str) -> None:
    call, code = SIGNATURES[service]
    session = boto3.Session(access_key(ACCOUNT), "wrong", region_name=REGION)
    once = Config(retries={"total_max_attempts": 1})
    client = session.client(service, endpoint_url=sandbox.aws_url, config=once)  # type: ignore[call-overload] # by name
    with pytest.raises(ClientError) as caught:
        getattr(client, call)(**({"ServiceCode": "AmazonEC2"} if service == "pricing" else {}))
    assert caught.value.response["Error"]["Code"] == code
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


SENT: dict[str, tuple[str, str, bytes]] = {
    "plain": ("GET", "/clusters", b""),
    "escapes in the path": ("DELETE", "/tags/arn%3Aaws%3Aeks%2Fa%20b?tagKeys=x%20y&tagKeys=a%2Bb", b""),
    "a query in another order": ("GET", "/clusters?nextToken=b%3D&maxResults=1&empty=", b""),
    "a body": ("POST", "/clusters/train/node-groups", b'{"nodegroupName": "\xc3\xa9"}'),
}


SECRET = "s" * 40


def signed_by_botocore(name: str, secret: str = SECRET) -> Signed:
    method, target, body = SENT[name]
    request = AWSRequest(method, f"http://127.0.0.1:4000{target}", data=body, headers={"x-two": " a  b "})
    SigV4Auth(Credentials(access_key(ACCOUNT), secret), "eks", REGION).add_auth(request)
    headers = {key.lower(): value for key, value in request.headers.items()} | {"host": "127.0.0.1:4000"}
    path, _, query = target.partition("?")
    return Signed(method, path, query, headers, body)


@pytest.mark.parametrize("name", SENT)
def test_signature_when_botocore_made_it_then_right_until_anything_is_changed(name: str) -> None:
    good = signed_by_botocore(name)
    check_signed(good, SECRET)
    other = {**good.headers, "x-two": "other"}
    unsigned = {**good.headers, "authorization": good.headers["authorization"].replace("host;", "")}
    for wrong in (
        signed_by_botocore(name, secret="x" * 40),
        replace(good, method="PUT"),
        replace(good, path=f"{good.path}/x"),
        replace(good, query=f"{good.query}&a=b"),
        replace(good, body=b"other"),
        replace(good, headers=other),
        replace(good, headers=unsigned),
        replace(good, headers={"authorization": good.headers["authorization"]}),
    ):
        with pytest.raises(AwsError, match="signature we calculated"):
            check_signed(wrong, SECRET)


def test_request_when_not_signed_then_403(sandbox: SandboxInfo) -> None:
    answer = httpx.get(f"{sandbox.aws_url}/clusters", trust_env=False, timeout=PATIENCE_S)
    assert (answer.status_code, answer.headers["x-amzn-errortype"]) == (403, "MissingAuthenticationToken")


def test_address_when_presigned_then_sts_answers_it(aws: Aws) -> None:
    address = presigned(aws.info.secret, host=aws.info.aws_url)
    answer = httpx.get(address, headers={"x-k8s-aws-id": NAME}, trust_env=False, timeout=PATIENCE_S)
    assert (answer.status_code, ACCOUNT in answer.text) == (200, True)
    assert httpx.get(address, headers={"x-k8s-aws-id": "other"}, trust_env=False, timeout=PATIENCE_S).status_code == 403
    assert httpx.get(address, trust_env=False, timeout=PATIENCE_S).status_code == 403


TOKENS: dict[str, tuple[Callable[[], str], bool]] = {
    "right": (lambda: bearer(SECRET), True),
    "of loopback": (lambda: encoded(presigned(SECRET, host="http://127.0.0.1:4000")), True),
    "global endpoint": (lambda: encoded(presigned(SECRET, host="https://sts.amazonaws.com")), True),
    "for another cluster": (lambda: bearer(SECRET, cluster="other"), False),
    "of another account": (lambda: bearer(SECRET, account="444455556666"), False),
    "with another secret": (lambda: bearer("x" * 40), False),
    "of another host": (lambda: encoded(presigned(SECRET, host="https://sts.example.com")), False),
    "without TLS": (
        lambda: encoded(presigned(SECRET, host="http://sts.us-east-1.amazonaws.com")).replace("=", ""),
        False,
    ),
    "good for too long": (lambda: encoded(presigned(SECRET, expires_s=901)), False),
    "padded": (lambda: bearer(SECRET) + "=", False),
    "with a key too many": (lambda: encoded(presigned(SECRET) + "&Extra=1"), False),
    "with a key twice": (lambda: encoded(presigned(SECRET) + "&Action=GetCallerIdentity"), False),
    "another action": (lambda: encoded(presigned(SECRET).replace("GetCallerIdentity", "GetSessionToken")), False),
    "without its prefix": (lambda: bearer(SECRET).removeprefix("k8s-aws-v1."), False),
    "no base64": (lambda: "k8s-aws-v1.*", False),
    "too long": (lambda: "k8s-aws-v1." + "a" * 5000, False),
}


@pytest.mark.parametrize(("token", "good"), TOKENS.values(), ids=TOKENS)
def test_token_when_anything_is_wrong_then_not_taken(token: Callable[[], str], good: bool) -> None:  # noqa: FBT001 - a column
    assert is_bearer_for(token(), NAME, ACCOUNT, SECRET) is good


def test_token_when_older_than_a_quarter_of_an_hour_then_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    token, now = bearer(SECRET), time.time()
    monkeypatch.setattr("gpukube_sandbox.eks.wire.identity.time.time", lambda: now + 14 * 60)
    assert is_bearer_for(token, NAME, ACCOUNT, SECRET)
    monkeypatch.setattr("gpukube_sandbox.eks.wire.identity.time.time", lambda: now + 16 * 60)
    assert not is_bearer_for(token, NAME, ACCOUNT, SECRET)


def kube_status(sandbox: SandboxInfo, token: str) -> int:
    """What the cluster's API answers to a token."""
    cluster = Aws(sandbox).eks.describe_cluster(name=NAME)["cluster"]
    path = f"{cluster['endpoint']}/api/v1/nodes"
    headers = {"Authorization": f"Bearer {token}"}
    answer = httpx.get(path, headers=headers, verify=False, trust_env=False, timeout=PATIENCE_S)  # noqa: S501 - loopback
    return answer.status_code


def test_kube_when_the_token_is_wrong_then_401(aws: Aws) -> None:
    assert kube_status(aws.info, bearer(aws.info.secret)) == 200
    assert kube_status(aws.info, bearer(aws.info.secret, cluster="other")) == 401
    assert kube_status(aws.info, "k8s-aws-v1." + base64.urlsafe_b64encode(b"https://x").decode().rstrip("=")) == 401


def test_kube_when_the_principal_is_not_mapped_then_401(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"mapped": False})
    assert kube_status(sandbox, bearer(sandbox.secret)) == 401
    assert Aws(sandbox).eks.list_access_entries(clusterName=NAME)["accessEntries"] == []


def test_roles_when_listed_then_the_clusters_and_its_nodes(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME, options={"roles": ["AmazonEKSNodeRole"]})
    iam = Aws(sandbox).client("iam")
    names = [
        role["RoleName"] for page in iam.get_paginator("list_roles").paginate(MaxItems=2) for role in page["Roles"]
    ]
    assert names == ["AmazonEKSNodeRole", "train-eksClusterRole", "train-eksNodeRole"]
    policy = iam.get_role(RoleName="train-eksClusterRole")["Role"]["AssumeRolePolicyDocument"]
    assert policy["Statement"][0]["Principal"] == {"Service": "eks.amazonaws.com"}
    attached = iam.list_attached_role_policies(RoleName="train-eksNodeRole")["AttachedPolicies"]
    assert "AmazonEKSWorkerNodePolicy" in {entry["PolicyName"] for entry in attached}
    with pytest.raises(iam.exceptions.NoSuchEntityException):
        iam.get_role(RoleName="nobody")
