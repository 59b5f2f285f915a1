"""Policies: every call of the live halves has its permission, each permission its source, and clouds take the files."""

from __future__ import annotations

import ast
import inspect
import json
import re
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
import pytest
import yaml
from jsonschema import Draft202012Validator
from lightkube import ApiError

from gpukube.cli.commands.doctor import EXTRAS as OPTIONS
from gpukube.cluster.kube.failures import explain
from gpukube.cluster.names import DEVICE_PLUGIN, GPU_OPERATOR, NAMESPACE
from gpukube.core.meanings import Problem
from gpukube.core.permissions import EXTRAS, PRINT_POLICY, Extra, PolicyLevel
from gpukube.engine.change.probing import _NEEDED as PROBING
from gpukube.engine.change.release import NEEDED
from gpukube.engine.documents.schema import document_schema
from gpukube.engine.permissions.chart_roles import (
    OPERATOR_EVERYWHERE,
    OPERATOR_OURS,
    PLUGIN_EVERYWHERE,
    PLUGIN_OURS,
)
from gpukube.engine.permissions.policies import describe_policies, file_text
from gpukube.engine.plan.prepare import prepare, prepare_addresses
from gpukube.errors import Where
from gpukube.spec.loading.load import load_specs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.core.permissions import Permission

Json = Any  # a document, some keys of which a test looks at
CLOUDS: Final = ("aks", "eks", "gke")
EXAMPLES: Final = Path(__file__).parents[3] / "examples"
GOLDEN: Final = Path(__file__).parents[2] / "golden" / "permissions"
HELPERS: Final = {"hosts", "cluster_token", "close", "send_request", "token", "get_token", "as_dict", "renew"}
"""Methods of the protocols that are no operations of a cloud."""
ADDRESSES: Final = {
    "aks": {
        "{}/subscriptions/{}/providers/Microsoft.Compute/skus": "GET Microsoft.Compute/skus",
        "{}/subscriptions/{}/providers/Microsoft.Compute/locations/{}/usages": "GET Microsoft.Compute/locations/usages",
        "{}/subscriptions/{}/providers/Microsoft.Compute": "",
        "{}/skus": "GET Microsoft.Compute/skus",
        "{}/capacityReservationGroups": "GET Microsoft.Compute/capacityReservationGroups",
        "{}{}/capacityReservations": "GET Microsoft.Compute/capacityReservationGroups/capacityReservations",
        "{}/locations/{}/placementScores/spot/generate":
            "POST Microsoft.Compute/locations/placementScores/spot/generate",
        "{}/api/retail/prices": "GET prices.azure.com/api/retail/prices",
        "{}/msi/token": "",
    },
    "gke": {
        "https://compute.googleapis.com/compute/v1/projects/{project}/aggregated/acceleratorTypes":
            "GET compute/v1/aggregated/acceleratorTypes",
        "{}/compute/v1/projects/{}/aggregated": "",
        "{}/machineTypes": "GET compute/v1/aggregated/machineTypes",
        "{}/acceleratorTypes": "GET compute/v1/aggregated/acceleratorTypes",
        "{}/compute/v1/projects/{}": "",
        "{}/regions/{}/{}": "",
        "aggregated/machineTypes": "GET compute/v1/aggregated/machineTypes",
        "aggregated/acceleratorTypes": "GET compute/v1/aggregated/acceleratorTypes",
        "aggregated/reservations": "GET compute/v1/aggregated/reservations",
        "{}/compute/v1/projects/{}/aggregated/reservations": "GET compute/v1/aggregated/reservations",
        "advice/capacity": "POST compute/v1/advice/capacity",
        "advice/capacityHistory": "POST compute/v1/advice/capacityHistory",
        "advice/calendarMode": "POST compute/v1/advice/calendarMode",
        "/compute/v1/{}": "",
        "/regions/{}": "GET compute/v1/regions",
        "projects/{}": "GET compute/v1/projects",
        "/v1/projects/{}/locations/global/services/compute.googleapis.com": "",
        "{}/quotaInfos/{}": "GET cloudquotas/v1/quotaInfos",
        "/v3/projects/{}/timeSeries": "GET monitoring/v3/timeSeries",
        "{}/v1/services/{}/skus": "GET cloudbilling/v1/services/skus",
        "{}/token": "",
    },
    "eks": {},
}  # fmt: skip
"""Addresses in the live halves -> the call; "" for parts of others, and for the sandbox's own."""


def table(cloud: str) -> tuple[Permission, ...]:
    found: tuple[Permission, ...] = import_module(f"gpukube_{cloud}.facts.permissions").PERMISSIONS
    return found


def operations(cloud: str) -> Iterator[str]:
    """Every operation that the live half of a cloud can send: its code is checked against these protocols."""
    sdk = import_module(f"gpukube_{cloud}.live.sdk")
    for name, protocol in vars(sdk).items():
        if inspect.isclass(protocol) and protocol.__module__ == sdk.__name__:
            for method in set(inspect.getmembers(protocol, inspect.isfunction)):
                if method[0] not in HELPERS and not method[0].startswith("_"):
                    yield called(cloud, name, method[0])


def called(cloud: str, protocol: str, method: str) -> str:
    if cloud == "aks":
        return f"{protocol}.{method}"
    if cloud == "gke":
        return method
    words = "".join(word.title() for word in method.split("_"))
    return words.replace("Aws", "AWS")


def addresses(cloud: str) -> Iterator[str]:
    """Every literal of the live half that looks like a path of an HTTP API."""
    folder = Path(str(import_module(f"gpukube_{cloud}.live").__file__)).parent
    for module in folder.glob("*.py"):
        tree = ast.parse(module.read_text("utf-8"))
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            elif isinstance(node, ast.Constant) and id(node) not in inner:
                text = str(node.value)
            else:
                continue
            if re.fullmatch(r"(https://[\w.-]+|\{\})?/?[\w{}.-]+(/[\w{}.-]+)+|(\{\})?/[\w{}./-]+|projects/\{\}", text):
                yield text


@pytest.mark.parametrize("cloud", CLOUDS)
def test_tables_when_read_then_each_row_tells_why_and_where_from(cloud: str) -> None:
    words = {
        value for name, value in vars(import_module(f"gpukube_{cloud}.facts.permissions")).items()
        if name.isupper() and isinstance(value, str) and not name.startswith("_")
    }  # fmt: skip
    for row in table(cloud):
        assert row.source.startswith("docs: "), row.name
        assert row.purpose.split()[0] in ("to", "so", "EKS"), row.name
        assert row.when in {"", *EXTRAS.values(), *words}, row.name
    keys = [(row.name, row.when, row.scope) for row in table(cloud)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_tables_when_compared_with_the_live_half_then_no_call_is_missing_or_made_up(cloud: str) -> None:
    covered = {call for row in table(cloud) for call in row.calls}
    free = set(import_module(f"gpukube_{cloud}.facts.permissions").WITHOUT_CALLS)
    sent = {*operations(cloud), *filter(None, ADDRESSES[cloud].values())}
    if cloud == "aks":
        sent.add("GET Microsoft.ContainerService/locations/operations")  # its address comes with an answer
    missing, unused = sorted(sent - covered - free), sorted((covered | free) - sent)
    table_file = f"providers/gpukube_{cloud}/facts/permissions.py"
    assert not missing, f"add rows for these calls to {table_file}, then run: python -m tools.permissions_docs"
    assert not unused, f"no code of the live half sends these calls: remove them from {table_file}"


@pytest.mark.parametrize("cloud", ["aks", "gke"])
def test_addresses_when_the_live_half_calls_another_then_it_needs_a_row(cloud: str) -> None:
    unknown = {text for text in addresses(cloud) if text not in ADDRESSES[cloud] and not _is_other(text)}
    assert not unknown, f"name the call of each address in ADDRESSES, and its row in gpukube_{cloud}.facts.permissions"


def _is_other(text: str) -> bool:
    """OAuth scopes, our own name, a pool of a cluster, media types."""
    return text.startswith(("https://www.", "gpukube/", "{}/{}", "application/")) or text.endswith("/.default")


SPEC: Final = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: demo}
clusters:
  one: {provider: eks, account: "111122223333", region: us-east-1, name: train}
  two: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
  three: {provider: gke, project: ml-prod, location: us-central1, name: train}
pools:
"""
EKS_POOL = "  - {name: a, instanceType: p5.48xlarge, clusters: [one], nodes: {count: 1}"
AKS_POOL = "  - {name: a, instanceType: Standard_NC24ads_A100_v4, clusters: [two], nodes: {count: 1}"
GKE_POOL = "  - {name: a, instanceType: a3-highgpu-8g, clusters: [three], nodes: {count: 1}"
NETWORK = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/net/providers/Microsoft.Network"
SUBNET = f"{NETWORK}/virtualNetworks/v/subnets/s"
JOIN = "Microsoft.Network/virtualNetworks/subnets/join/action"
ROLE = "arn:aws:iam::111122223333:role/n"


def document(text: str, level: PolicyLevel = "apply", extras: tuple[Extra, ...] = ()) -> Json:
    return describe_policies(prepare(load_specs(["-"], stdin=StringIO(text), environ={})), level, extras)


def granted(text: str, level: PolicyLevel = "apply", extras: tuple[Extra, ...] = ()) -> set[str]:
    return {row["name"] for policy in document(text, level, extras)["policies"] for row in policy["permissions"]}


NEEDS: Final = {
    "reserved capacity on EKS": (
        EKS_POOL + ", capacity: {type: reserved, reserved: {eks: {capacityReservation: cr-0123456789abcdef0}}}}",
        "ec2:DescribeCapacityReservations",
    ),
    "alternatives of a fixed size": (
        EKS_POOL + ", alternatives: [{name: b, capacity: {type: spot}}]}",
        "autoscaling:DescribeScalingActivities",
    ),
    "an open role": (EKS_POOL + "}", "iam:ListRoles"),
    "tags": (EKS_POOL + f", eks: {{nodeRole: {ROLE}}}, tags: {{team: ml}}}}", "ec2:CreateTags"),
    "a subnet": (AKS_POOL + f", aks: {{vnetSubnetID: {SUBNET}}}}}", JOIN),
    "a quota by family": (GKE_POOL + "}", "cloudquotas.quotas.get"),
    "open zones": (GKE_POOL + "}", "compute.acceleratorTypes.list"),
}  # fmt: skip


@pytest.mark.parametrize("case", NEEDS)
def test_policy_when_a_spec_needs_more_then_it_has_that_and_others_do_not(case: str) -> None:
    pool, name = NEEDS[case]
    assert name in granted(SPEC + pool)
    plain = {
        "eks": EKS_POOL + f", eks: {{nodeRole: {ROLE}}}}}",
        "aks": AKS_POOL + "}",
        "gke": GKE_POOL.replace("a3-highgpu-8g", "a2-highgpu-1g") + ", zones: [us-central1-a]}",
    }
    if case != "tags":  # a launch template has tags of its own
        assert name not in {found for other in plain.values() for found in granted(SPEC + other)}


@pytest.mark.parametrize("extra", ["live-prices", "upgrade", "catalog"])
def test_policy_when_an_extra_is_asked_for_then_only_it_brings_its_rows(extra: Extra) -> None:
    pools = "\n".join(
        pool.replace("name: a", f"name: {name}") + "}"
        for name, pool in zip("abc", (EKS_POOL, AKS_POOL, GKE_POOL), strict=True)
    )
    more = granted(SPEC + pools, extras=(extra,)) - granted(SPEC + pools)
    rows = [row for cloud in CLOUDS for row in table(cloud) if row.when == EXTRAS[extra]]
    assert more
    assert more <= {row.name for row in rows}


@pytest.mark.parametrize(
    ("level", "verbs"), [("plan", {"get"}), ("apply", {"get", "create, patch"})], ids=["plan", "apply"]
)
def test_policy_when_pools_have_alternatives_then_leases_of_gpukubes_namespace_are_added(
    level: PolicyLevel, verbs: set[str]
) -> None:
    family = GKE_POOL + ", alternatives: [{name: b, capacity: {type: spot}}]}"
    expected = {f"{some} leases.coordination.k8s.io in gpukube-system" for some in verbs}
    for names in (granted(SPEC + GKE_POOL + "}", level, ("alternatives",)), granted(SPEC + family, level)):
        assert {name for name in names if "leases" in name} == expected
    assert not {name for name in granted(SPEC + GKE_POOL + "}", level) if "leases" in name}


@pytest.mark.parametrize(
    ("pool", "order"),
    [
        (AKS_POOL, {"get configmaps in kube-system", "create, patch configmaps in kube-system"}),
        (GKE_POOL, {f"{some} computeclasses.cloud.google.com" for some in ("get, list", "create, patch, delete")}),
    ],
    ids=["aks", "gke"],
)
def test_policy_when_an_autoscaled_pool_has_alternatives_then_their_order_may_be_written(
    pool: str, order: set[str]
) -> None:
    family = SPEC + pool + ", alternatives: [{name: b, capacity: {type: spot}}]}"
    scaled = family.replace("{count: 1}", "{autoscaling: {min: 0, max: 2}}")
    assert granted(scaled) - granted(family) == order
    assert order <= granted(SPEC + pool + "}", extras=("alternatives",))


@pytest.mark.parametrize("owner", ["auto", "dra"])
def test_policy_when_pools_are_probed_then_only_those_of_the_dra_driver_need_claims(owner: str) -> None:
    pools = EKS_POOL + f", devicePlugin: {{owner: {owner}}}}}"
    more = granted(SPEC + pools, extras=("probe",)) - granted(SPEC + pools)
    claims = {name for name in more if "resource.k8s.io" in name}
    assert bool(claims) is (owner == "dra")
    assert "create, delete resourceclaimtemplates.resource.k8s.io in gpukube-system" in claims or owner != "dra"


def test_policy_when_a_plan_is_enough_then_nothing_in_it_changes_anything() -> None:
    names = granted(SPEC + EKS_POOL + "}", "plan") | granted(SPEC + GKE_POOL + "}", "plan")
    inside = {name for name in names if " " in name}
    assert all(re.match(r"(get, )?list |get ", name) for name in inside)
    names -= inside
    credential = "listClusterUserCredential/action"
    reading = re.compile(rf"\w+:(Describe|List|Get)\w+|Microsoft\..*/(read|{credential})|[a-z]+\.\w+\.(get|list)")
    assert not {name for name in names if not reading.fullmatch(name)}


ACTION: Final = re.compile(r"[a-z0-9-]+:[A-Z][A-Za-z0-9]+")
ARN: Final = re.compile(r"\*|arn:aws(-cn|-us-gov)?:[a-z0-9-]+:[a-z0-9-]*:(\d{12})?:[\w+=,.@/*-]+")


def check_iam(policy: Json) -> None:
    """The grammar of IAM policies, as far as these use it (docs: IAM/reference_policies_grammar)."""
    assert policy["Version"] == "2012-10-17"
    sids = [statement["Sid"] for statement in policy["Statement"]]
    assert len(set(sids)) == len(sids)
    for statement in policy["Statement"]:
        assert set(statement) <= {"Sid", "Effect", "Action", "Resource", "Condition"}
        assert re.fullmatch(r"[A-Za-z0-9]+", statement["Sid"])
        assert statement["Effect"] == "Allow"
        assert statement["Action"]
        assert all(ACTION.fullmatch(action) for action in statement["Action"])
        assert statement["Resource"]
        assert all(ARN.fullmatch(resource) for resource in statement["Resource"]), statement["Resource"]
        for values in statement.get("Condition", {}).values():
            assert all(values.values())
    assert len("".join(json.dumps(policy).split())) <= 6144


def check_azure(role: Json) -> None:
    """The form that az role definition create takes (docs: role-based-access-control/custom-roles-cli)."""
    lists = ("Actions", "NotActions", "DataActions", "NotDataActions", "AssignableScopes")
    assert set(role) == {"Name", "IsCustom", "Description", *lists}
    assert all(isinstance(role[name], list) for name in lists)
    assert all(re.fullmatch(r"Microsoft\.\w+(/\w+)+/(read|write|delete|action)", name) for name in role["Actions"])
    scope = r"/subscriptions/[0-9a-f-]{36}(/resourceGroups/[\w.()-]+)?"
    assert all(re.fullmatch(scope, place) for place in role["AssignableScopes"])
    assert len(role["Name"]) <= 128


def check_google(role: Json) -> None:
    """The form that gcloud iam roles create --file takes (docs: iam/docs/creating-custom-roles)."""
    assert set(role) == {"title", "description", "stage", "includedPermissions"}
    assert len(role["title"]) <= 100
    assert len(role["description"]) <= 256
    assert all(re.fullmatch(r"[a-z]+\.[A-Za-z]+\.[A-Za-z]+", name) for name in role["includedPermissions"])


VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "use")


def check_kubernetes(document: Json) -> None:
    """As far as the API checks roles and bindings (docs: kubernetes.io/docs/reference/access-authn-authz/rbac)."""
    kind, name = document["kind"], document["metadata"]["name"]
    if kind == "Namespace":
        assert name == NAMESPACE
    elif kind.endswith("Binding"):
        assert document["roleRef"]["name"] == name
        assert document["roleRef"]["kind"] == kind.removesuffix("Binding")
        assert all(subject["name"] and "{" not in subject["name"] for subject in document["subjects"])
    else:
        assert (kind == "Role") == ("namespace" in document["metadata"])
        verbs = {verb for rule in document["rules"] for verb in rule["verbs"]}
        assert verbs <= set(VERBS)
        assert not any("*" in value for rule in document["rules"] for values in rule.values() for value in values)


CHECKS: Final = {"eks": check_iam, "aks": check_azure, "gke": check_google, "kubernetes": check_kubernetes}


@pytest.mark.parametrize("level", ["plan", "apply"])
def test_files_when_written_for_the_example_then_as_expected_and_what_clouds_take(
    level: PolicyLevel, request: pytest.FixtureRequest
) -> None:
    example = prepare(load_specs([str(EXAMPLES / "three-clouds.yaml")], environ={}))
    found = describe_policies(example, level, tuple(EXTRAS))
    Draft202012Validator(document_schema("permissions")).validate(json.loads(json.dumps(found)))
    for policy in found["policies"]:
        text = file_text(policy["file"], policy["documents"])
        for read in yaml.safe_load_all(text):
            CHECKS[policy["cloud"]](read)
        golden = GOLDEN / policy["file"]
        if request.config.getoption("--update"):
            golden.write_text(text, "utf-8")
        assert golden.read_text("utf-8") == text
    assert len({policy["file"] for policy in found["policies"]}) == len(found["policies"])


def test_files_when_one_policy_cannot_hold_all_clusters_then_parts_that_together_do() -> None:
    count = 150
    addresses = [f"eks:111122223333/eu-west-{number % 3 + 1}/a-rather-long-name-{number}" for number in range(count)]
    found = describe_policies(prepare_addresses(addresses), "apply", ())["policies"]
    policies = [policy for policy in found if policy["cloud"] == "eks"]
    assert len(policies) > 1
    for policy in policies:
        (iam,) = policy["documents"]
        check_iam(iam)
        assert any("attach all" in note for note in policy["notes"])
        assert any("--shard" in note for note in policy["notes"]) is (len(policies) > 10)
    assert sum(len(policy["clusters"]) for policy in policies) == count


def test_files_when_clusters_are_given_by_address_then_named_without_slashes() -> None:
    addresses = [
        "eks:111122223333/us-east-1/train",
        "eks:111122223333/eu-west-1/train",
        "gke:ml-prod/us-central1/train",
    ]
    files = [policy["file"] for policy in describe_policies(prepare_addresses(addresses), "plan", ())["policies"]]
    assert len(set(files)) == len(files)
    assert all(re.fullmatch(r"[\w.-]+\.(json|yaml)", name) for name in files), files


def test_policy_when_the_cluster_is_in_another_partition_then_its_names_are_too() -> None:
    policy, _ = describe_policies(prepare_addresses(["eks:111122223333/cn-north-1/train"]), "plan", ())["policies"]
    assert "arn:aws-cn:eks:cn-north-1:111122223333:cluster/train" in json.dumps(policy["documents"])
    assert "arn:aws:" not in json.dumps(policy["documents"])


def policies_of(cloud: str, text: str) -> list[Json]:
    return [policy for policy in document(text)["policies"] if policy["cloud"] == cloud]


def test_policy_when_roles_and_accounts_are_named_then_granted_on_these_alone() -> None:
    unused = "  four: {provider: eks, account: '111122223333', region: us-east-1, name: spare}\npools:\n"
    (iam,) = policies_of("eks", SPEC.replace("pools:\n", unused) + EKS_POOL + f", eks: {{nodeRole: {ROLE}}}}}")
    assert iam["clusters"] == ["one", "four"]
    (passed,) = [one for one in iam["documents"][0]["Statement"] if one["Action"] == ["iam:PassRole"]]
    assert passed["Resource"] == [ROLE]
    account = "nodes@ml-prod.iam.gserviceaccount.com"
    *_, nodes = policies_of("gke", SPEC + GKE_POOL + f", gke: {{config: {{serviceAccount: {account}}}}}}}")
    assert f"add-iam-policy-binding {account}" in nodes["commands"][1]
    assert not nodes["notes"]
    *_, linked = policies_of("aks", SPEC + AKS_POOL + f", aks: {{podSubnetID: {SUBNET}}}}}")
    assert linked["documents"][0]["AssignableScopes"] == [SUBNET.partition("/providers")[0]]
    assert linked["commands"][1].endswith(f"--scope {SUBNET}")


def rights(text: str, *extras: Extra) -> set[str]:
    """What the roles of the clusters allow, as kubectl auth can-i takes it."""
    found = [policy for policy in document(text, extras=extras)["policies"] if policy["cloud"] == "kubernetes"]
    return {call for policy in found for row in policy["permissions"] for call in row["calls"]}


def asked(rows: Iterable[tuple[str, str, str]]) -> set[str]:
    """The rights that gpukube checks before it changes anything, all in its namespace or in the whole cluster."""
    return {f"{verb} {resource}.{group}" if group else f"{verb} {resource}" for verb, resource, group in rows}


HELM = EKS_POOL.replace("p5.48xlarge", "g4dn.xlarge")
OPERATOR = HELM + ", devicePlugin: {owner: operator}}"


def test_roles_when_compared_with_what_gpukube_checks_first_then_each_check_passes() -> None:
    plain = {right.removesuffix(f" in {NAMESPACE}") for right in rights(SPEC + HELM + "}", "probe")}
    assert asked(("create", *row) for row in NEEDED[DEVICE_PLUGIN]) <= plain
    assert asked(PROBING) <= plain
    operator = {right.removesuffix(f" in {NAMESPACE}") for right in rights(SPEC + OPERATOR)}
    assert asked(("create", *row) for row in NEEDED[GPU_OPERATOR]) <= operator
    assert "create clusterpolicies.nvidia.com" not in plain


def test_roles_when_clusters_have_no_release_then_nothing_of_helm_is_in_them() -> None:
    bare = SPEC + GKE_POOL + ", devicePlugin: {owner: cloud}}"
    changing = {right for right in rights(bare) if right.split()[0] not in ("get", "list")}
    assert changing == {"patch nodes", "create pods/eviction"}
    assert "create daemonsets.apps in gpukube-system" in rights(bare, "migrate-release")


def test_roles_when_written_then_what_charts_create_allows_nothing_more() -> None:
    """The escalation check: each right of a role that Helm creates has to be held by whoever creates it."""
    for text, everywhere, ours in (
        (SPEC + HELM + "}", PLUGIN_EVERYWHERE, PLUGIN_OURS),
        (SPEC + OPERATOR, OPERATOR_EVERYWHERE, OPERATOR_OURS),
    ):
        held = rights(text)
        for rule in everywhere:
            assert (
                asked((verb, res, rule.group) for verb in rule.verbs.split() for res in rule.resources.split()) <= held
            )
        for rule in ours:
            wanted = asked((verb, res, rule.group) for verb in rule.verbs.split() for res in rule.resources.split())
            assert wanted <= {right.removesuffix(f" in {NAMESPACE}") for right in held}
        assert not {right for right in held if right.split()[0] in ("escalate", "bind", "impersonate")}


def test_options_when_listed_for_help_then_those_that_tables_know() -> None:
    assert set(OPTIONS) == set(EXTRAS)


LINKED: Final = (
    "The client 'x' with object id 'x' has permission to perform action "
    "'Microsoft.ContainerService/managedClusters/agentPools/write' on scope '/subscriptions/1'; however, it does not "
    f"have permission to perform action(s) '{JOIN}' on the linked scope(s)"
)
LAUNCH: Final = "You are not authorized to launch instances with this launch template. Encoded authorization failure"
TEMPLATE: Final = (
    "You are not authorized to perform this operation. User: x is not authorized to perform: ec2:CreateLaunchTemplate "
    "on resource: y. Encoded authorization failure message: SAh2nDlM"
)
WRITE: Final = "Microsoft.ContainerService/managedClusters/agentPools/write"
REFUSALS: Final = {
    "eks": (
        ("AccessDeniedException", "User: x is not authorized to perform: eks:TagResource on resource: y",
         "eks:TagResource"),
        ("UnauthorizedOperation", TEMPLATE, "ec2:CreateLaunchTemplate"),
        ("InvalidRequestException", LAUNCH, "ec2:RunInstances"),
        ("InvalidRequestException", "SLR exists due to missing permissions for 'iam:GetRole'", "iam:GetRole"),
    ),
    "aks": (
        ("AuthorizationFailed", f"The client 'x' does not have authorization to perform action '{WRITE}' over", WRITE),
        ("LinkedAuthorizationFailed", LINKED, JOIN),
    ),
    "gke": (
        ("PERMISSION_DENIED", 'Required "container.clusters.update" permission(s) for "projects/p/zones/z/clusters/c".',
         "container.clusters.update"),
        ("PERMISSION_DENIED", "Permission 'cloudquotas.quotas.get' denied on resource", "cloudquotas.quotas.get"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("cloud", CLOUDS)
def test_refusals_when_a_permission_is_missing_then_the_fix_names_it_and_what_prints_all(cloud: str) -> None:
    error_of = import_module(f"gpukube_{cloud}.facts.meanings").error_of
    for code, text, permission in REFUSALS[cloud]:
        fix = error_of(Problem(code, text, status=403), "train").diagnostics[0].fix
        assert f"allow {permission}" in fix, fix
        assert PRINT_POLICY in fix


def test_refusal_when_the_cluster_denies_then_the_fix_is_what_kubectl_takes() -> None:
    request = httpx2.Request("GET", "https://train/api/v1/pods")
    text = 'pods is forbidden: User "x" cannot create resource "pods/eviction" in API group "" in the namespace "ml"'
    answer = httpx2.Response(403, json={"code": 403, "message": text, "reason": "Forbidden"}, request=request)
    fix = explain(Where("train"), "evicting", ApiError(request, answer)).diagnostics[0].fix
    assert fix.startswith("allow create pods/eviction --namespace ml; ")
    assert PRINT_POLICY in fix
