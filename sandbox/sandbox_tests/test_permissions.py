"""What calls need, what gpukube has used of it, and refusals as the clouds word them.

In scope: the sandbox's own side, by the clouds' SDKs. Out of scope: gpukube's policies (tests/permissions).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import httpx
import pytest
from azure.core.exceptions import HttpResponseError
from botocore.config import Config
from botocore.exceptions import ClientError

from gpukube_sandbox import daemon
from gpukube_sandbox.aks import permissions as of_azure
from gpukube_sandbox.aks import routes
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.daemon import SandboxError
from gpukube_sandbox.eks import account, ec2, market, parameters, servicequotas
from gpukube_sandbox.eks import permissions as of_aws
from gpukube_sandbox.gke import permissions as of_google
from gpukube_sandbox.kube.store.escalation import check_grant, grant_of
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.rbac import user_named
from gpukube_sandbox.kube.store.store import Store
from gpukube_sandbox.permits import Need, PermitBook
from sandbox_tests.aks.arm import CLUSTER_PATH, GROUP, NAME, SUBSCRIPTION, Arm
from sandbox_tests.eks.aws import ACCOUNT, ONE, REGION, T4, Aws
from sandbox_tests.gke.clients import CLUSTER, PROJECT, Gke, add_cluster, pool_of
from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

OURS = [(b"user-agent", b"Boto3/1.44 gpukube/0.1.0")]
QUOTA = "locations/global/services/compute.googleapis.com/quotaInfos/GPUS-PER-GPU-FAMILY-per-project-region"
RBAC = "rbac.authorization.k8s.io"


# The map


def test_map_when_the_clouds_answer_a_call_then_it_has_a_row() -> None:
    queries = {"ec2": {**ec2.ACTIONS, **market.ACTIONS}, "iam": account.IAM, "autoscaling": account.AUTOSCALING}
    named = {f"{service}:{name}" for service, names in queries.items() for name in names}
    named |= {f"servicequotas:{name}" for name in servicequotas.OPERATIONS}
    named |= {f"ssm:{name}" for name in parameters.OPERATIONS}

    assert named <= of_aws.KNOWN
    for method, below in routes._CALLS:
        path = "/".join([CLUSTER_PATH.removesuffix("/"), *below.replace("*", "name").split("/")]).rstrip("/")
        assert of_azure.needs({"method": method, "path": path}, b""), below


@pytest.mark.parametrize(
    ("path", "permission"),
    [
        ("/compute/v1/projects/p/regions/us-central1", "compute.regions.get"),
        ("/compute/v1/projects/p", "compute.projects.get"),
        ("/compute/v1/projects/p/aggregated/machineTypes", "compute.machineTypes.list"),
        ("/compute/v1/projects/p/zones/us-central1-a/acceleratorTypes", "compute.acceleratorTypes.list"),
        ("/v3/projects/p/timeSeries", "monitoring.timeSeries.list"),
        ("/v1/projects/p/locations/us-central1-a/clusters/c/nodePools", "container.clusters.get"),
        ("/v1/projects/p/locations/us-central1-a/operations/o", "container.operations.get"),
    ],
)
def test_map_when_google_is_asked_over_rest_then_the_method_s_permission(path: str, permission: str) -> None:
    assert [need.permission for need in of_google.needs({"method": "GET", "path": path}, b"")] == [permission]


# The book


def test_book_when_others_call_then_nothing_is_noted() -> None:
    book = PermitBook(denied={"eks:ListClusters"})
    needs = [Need("eks:ListClusters")]

    assert book.missing(needs, [(b"user-agent", b"aws-cli/2.30")]) is not None
    assert not book.used
    for agent in (b"gpukube/0.1.0", b"Helm/4.2", b"Boto3/1.4 md/x gpukube/0.1.0"):
        book.missing(needs, [(b"user-agent", agent)])
    book.note(["list pods"], [(b"x-goog-api-client", b"gpukube/0.1.0 gl-python/3.11")])
    book.note(["list nodes"], [(b"user-agent", b"Helm/4.2.1")])  # the command, which gpukube does not start here

    assert book.used == {"eks:ListClusters", "list pods"}


def test_book_when_only_some_are_allowed_then_the_first_of_the_others_is_missing() -> None:
    book = PermitBook(allowed=("ec2:describe*", "eks:CreateNodegroup"))
    needs = [Need("eks:CreateNodegroup"), Need("iam:PassRole"), Need("ec2:DescribeSubnets")]

    missing = book.missing(needs, OURS)

    assert missing is not None
    assert missing.permission == "iam:PassRole"
    book.reset()
    assert book.missing(needs, OURS) is None
    assert book.used == {need.permission for need in needs}


# AWS


@pytest.fixture
def aws(sandbox: SandboxInfo) -> Aws:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME)
    return Aws(sandbox)


def _create(aws: Aws) -> object:
    data = {"TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "ml"}]}]}
    template = aws.client("ec2").create_launch_template(LaunchTemplateName="gpus", LaunchTemplateData=data)
    place = {**aws.place(), "launchTemplate": {"id": template["LaunchTemplate"]["LaunchTemplateId"]}}
    return aws.eks.create_nodegroup(
        clusterName=NAME, nodegroupName="t4", tags={"team": "ml"}, scalingConfig=ONE, **T4, **place
    )


@pytest.mark.parametrize(
    ("permission", "code", "words"),
    [
        (
            "eks:CreateNodegroup",
            "AccessDeniedException",
            f"perform: eks:CreateNodegroup on resource: arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{NAME} because no ",
        ),
        ("eks:TagResource", "AccessDeniedException", "is not authorized to perform: eks:TagResource on resource: "),
        ("iam:PassRole", "AccessDeniedException", f"iam:PassRole on resource: arn:aws:iam::{ACCOUNT}:role/"),
        (
            "iam:GetRole",
            "InvalidRequestException",
            "AWSServiceRoleForAmazonEKSNodegroup already exists due to missing permissions for 'iam:GetRole'",
        ),
        ("iam:ListAttachedRolePolicies", "AccessDeniedException", "iam:ListAttachedRolePolicies on resource: role "),
        (
            "ec2:DescribeSubnets",
            "InvalidRequestException",
            "You are not authorized to perform ec2:DescribeSubnets. ",
        ),
        ("ec2:RunInstances", "InvalidRequestException", "You are not authorized to launch instances with this launch "),
        ("ec2:CreateTags", "InvalidRequestException", "template. Encoded authorization failure message: "),
        (
            "ec2:CreateLaunchTemplate",
            "UnauthorizedOperation",
            f"User: arn:aws:iam::{ACCOUNT}:user/sandbox is not authorized to perform: ec2:CreateLaunchTemplate on ",
        ),
    ],
)
def test_eks_when_a_permission_is_denied_then_its_own_words(aws: Aws, permission: str, code: str, words: str) -> None:
    daemon.deny_permissions(aws.info, permission)

    with pytest.raises(ClientError) as caught:
        _create(aws)

    assert caught.value.response["Error"]["Code"] == code
    assert words in caught.value.response["Error"]["Message"]
    daemon.deny_permissions(aws.info)
    assert [name for name in aws.eks.list_nodegroups(clusterName=NAME)["nodegroups"] if name == "t4"] == []


def test_eks_when_the_account_never_had_a_group_then_its_service_linked_role_is_made(sandbox: SandboxInfo) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME)
    group = Aws(sandbox).eks.describe_nodegroup(clusterName=NAME, nodegroupName="system")["nodegroup"]
    daemon.tamper(sandbox, NAME, "system", delete=True)
    daemon.deny_permissions(sandbox, "iam:CreateServiceLinkedRole")

    with pytest.raises(ClientError, match="missing permissions for 'iam:CreateServiceLinkedRole'"):
        Aws(sandbox).eks.create_nodegroup(
            clusterName=NAME, nodegroupName="t4", subnets=group["subnets"], nodeRole=group["nodeRole"], **T4
        )


def test_used_when_clients_of_gpukube_and_others_call_then_those_of_gpukube_and_a_reset_keeps_them(aws: Aws) -> None:
    session = boto3.Session(*_keys(aws), region_name=REGION)
    named = Config(user_agent_extra="gpukube/0.1.0", read_timeout=PATIENCE_S)
    aws.eks.list_access_entries(clusterName=NAME)
    session.client("eks", endpoint_url=aws.info.aws_url, config=named).list_nodegroups(clusterName=NAME)
    daemon.reset(aws.info)

    used = daemon.used_permissions(aws.info)
    assert "eks:ListNodegroups" in used
    assert "eks:ListAccessEntries" not in used  # gpukube never reads them


def _keys(aws: Aws) -> tuple[str, str]:
    credentials = aws._session.get_credentials()
    assert credentials is not None
    return credentials.access_key, credentials.secret_key


# Azure


def test_arm_when_an_action_is_denied_then_authorization_failed(sandbox: SandboxInfo) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME)
    daemon.deny_permissions(sandbox, "Microsoft.ContainerService/managedClusters/agentPools/read")
    with Arm(sandbox) as arm, pytest.raises(HttpResponseError) as caught:
        list(arm.sdk.agent_pools.list(GROUP, NAME))

    assert caught.value.status_code == httpx.codes.FORBIDDEN
    assert caught.value.error is not None
    assert caught.value.error.code == "AuthorizationFailed"
    assert (
        "does not have authorization to perform action 'Microsoft.ContainerService/managedClusters/agentPools/read' "
        f"over scope '{CLUSTER_PATH}' or the scope is invalid." in caught.value.message
    )


def test_arm_when_a_linked_action_is_denied_then_the_linked_scope_is_named(sandbox: SandboxInfo) -> None:
    subnet = (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/hub/subnets/gpu"
    )
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME)
    daemon.declare(sandbox, "aks", resources=[subnet])
    daemon.deny_permissions(sandbox, "Microsoft.Network/virtualNetworks/subnets/join/action")
    with Arm(sandbox) as arm:
        answer = arm.http.put(
            f"{CLUSTER_PATH}/agentPools/t4",
            params={"api-version": "2026-08-01"},
            json={"properties": {"count": 1, "vmSize": "Standard_NC4as_T4_v3", "vnetSubnetID": subnet}},
        )

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (httpx.codes.FORBIDDEN, "LinkedAuthorizationFailed")
    assert (
        "has permission to perform action 'Microsoft.ContainerService/managedClusters/agentPools/write' on scope "
        f"'{CLUSTER_PATH}/agentPools/t4'; however, it does not have permission to perform action "
        f"'Microsoft.Network/virtualNetworks/subnets/join/action' on the linked scope(s) '{subnet}'" in error["message"]
    )


# Google Cloud


@pytest.mark.parametrize("transport", ["grpc", "rest"])
def test_gke_when_a_permission_is_denied_then_it_is_named(sandbox: SandboxInfo, transport: str) -> None:
    add_cluster(sandbox)
    gke = Gke(sandbox, transport)
    daemon.deny_permissions(sandbox, "container.clusters.get")
    reading = gke.refused(lambda: gke.sdk.list_node_pools(parent=CLUSTER))
    daemon.deny_permissions(sandbox, "iam.serviceAccounts.actAs")
    creating = gke.refused(lambda: gke.begin(pool_of("cpu")))
    gke.close()

    assert reading == ("PERMISSION_DENIED", f'Required "container.clusters.get" permission(s) for "{CLUSTER}".')
    assert creating == (
        "INVALID_ARGUMENT",
        (
            'The user does not have access to service account "default". Ask a project owner to grant you the '
            "iam.serviceAccountUser role on the service account."
        ),
    )


@pytest.mark.parametrize(
    ("permission", "path", "words"),
    [
        (
            "compute.regions.get",
            f"/compute/v1/projects/{PROJECT}/regions/us-central1",
            f"Required 'compute.regions.get' permission for 'projects/{PROJECT}/regions/us-central1'",
        ),
        (
            "monitoring.timeSeries.list",
            f"/v3/projects/{PROJECT}/timeSeries",
            "Permission monitoring.timeSeries.list denied (or the resource may not exist).",
        ),
        (
            "cloudquotas.quotas.get",
            f"/v1/projects/{PROJECT}/{QUOTA}",
            "Permission 'cloudquotas.quotas.get' denied on resource '//cloudquotas.googleapis.com/projects/",
        ),
    ],
)
def test_google_when_another_api_refuses_then_in_its_own_words(
    sandbox: SandboxInfo, permission: str, path: str, words: str
) -> None:
    daemon.deny_permissions(sandbox, permission)
    headers = signed(sandbox)

    answer = httpx.get(f"{sandbox.gke_url}{path}", headers=headers, timeout=PATIENCE_S, trust_env=False)

    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (httpx.codes.FORBIDDEN, "PERMISSION_DENIED")
    assert words in error["message"]


# Names


def test_deny_when_nothing_needs_a_permission_then_refused_with_the_nearest(sandbox: SandboxInfo) -> None:
    with pytest.raises(SandboxError, match="did you mean eks:CreateNodegroup"):
        daemon.deny_permissions(sandbox, "eks:CreateNodeGroup")

    daemon.deny_permissions(sandbox, "create pods/eviction", "list daemonsets.apps")
    daemon.reset(sandbox)
    assert daemon.call(sandbox, "GET", "permissions")["denied"] == []


# Kubernetes: nobody grants more than they hold


def _role(name: str, *rules: dict[str, list[str]]) -> dict[str, object]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def _rule(verbs: str, group: str, *resources: str, **more: list[str]) -> dict[str, list[str]]:
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": list(resources), **more}


def _holding(*rules: dict[str, list[str]]) -> Store:
    store = Store(ManualClock())
    store.create(CORE["clusterroles"], _role("own", *rules))
    subject = {"apiGroup": RBAC, "kind": "User", "name": "ci"}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "own"}
    store.create(
        CORE["clusterrolebindings"], {"metadata": {"name": "own"}, "roleRef": reference, "subjects": [subject]}
    )
    return store


def _write(store: Store, plural: str, new: dict[str, object], old: dict[str, object] | None = None) -> None:
    """As the API does it, for somebody with the rights that are held."""
    grant = grant_of(store, CORE[plural], new, old)
    if grant:
        check_grant(store, user_named("ci"), CORE[plural], "new", grant)


WANTED = (_rule("get list", "", "pods"), _rule("patch", "", "nodes", resourceNames=["a"]), _rule("get", "apps", "*"))
READS = _rule("*", "", "pods", "nodes")


@pytest.mark.parametrize(
    "held",
    [
        pytest.param([READS, _rule("get list", "apps", "*")], id="all-of-it"),
        pytest.param([_rule("*", "*", "*")], id="everything"),
        pytest.param([_rule("escalate", RBAC, "clusterroles")], id="escalate"),
    ],
)
def test_role_when_its_writer_holds_its_rights_then_written(held: list[dict[str, list[str]]]) -> None:
    _write(_holding(*held), "clusterroles", _role("new", *WANTED))


def test_role_when_its_writer_lacks_rights_then_they_are_listed() -> None:
    store = _holding(_rule("get", "", "pods"))

    with pytest.raises(ApiProblem) as caught:
        _write(store, "clusterroles", _role("new", *WANTED))

    assert caught.value.code == httpx.codes.FORBIDDEN
    assert caught.value.message == (
        'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "ci" (groups=["system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], ResourceNames:["a"], Verbs:["patch"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}\n'
        '{APIGroups:["apps"], Resources:["*"], Verbs:["get"]}'
    )
    _write(store, "clusterroles", _role("new", *WANTED), _role("new", *WANTED))  # unchanged rules


def test_binding_when_its_writer_may_bind_or_holds_the_role_then_written_else_refused() -> None:
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    binding: dict[str, object] = {"metadata": {"name": "b"}, "roleRef": reference, "subjects": []}

    _write(_holding(_rule("bind", RBAC, "clusterroles", resourceNames=["view"])), "clusterrolebindings", binding)
    _write(_holding(_rule("get list watch", "*", "*")), "clusterrolebindings", binding)
    with pytest.raises(ApiProblem, match="attempting to grant RBAC permissions not currently held"):
        _write(_holding(_rule("bind", RBAC, "clusterroles", resourceNames=["edit"])), "clusterrolebindings", binding)
    with pytest.raises(ApiProblem, match='"gone" not found'):
        _write(_holding(), "clusterrolebindings", {**binding, "roleRef": {**reference, "name": "gone"}})
