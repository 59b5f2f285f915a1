"""One spec, three clouds: the same devices are proven on each, and one that fails does not stop the others."""

from __future__ import annotations

import pytest

from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION
from tests.cli.harness import EXAMPLES, Document, Gpukube, Result

SPEC = EXAMPLES / "three-clouds.yaml"
CLUSTERS = {"eks": "train-eks", "aks": "train-aks", "gke": "train-gke"}
MIG, SLICED = "a100slices", "t4slices"
DEVICES = {MIG: [56], SLICED: [4, 4]}
"""8 GPUs x 7 instances on one node; one GPU x 4 replicas on each of two nodes."""
SERVICES = {"eks": "aws", "aks": "arm", "gke": "gke"}
MACHINES = {
    ("eks", MIG): "p4d.24xlarge",
    ("aks", MIG): "Standard_ND96asr_v4",
    ("gke", MIG): "a2-highgpu-8g",
    ("eks", SLICED): "g4dn.xlarge",
    ("aks", SLICED): "Standard_NC4as_T4_v3",
    ("gke", SLICED): "n1-standard-8",
}
INEXACT = {
    ("eks", MIG): {"sharing.mig.single"},
    ("aks", MIG): {"sharing.mig.single"},
    ("gke", MIG): set[str](),
    ("eks", SLICED): {"sharing.timeSlicing"},
    ("aks", SLICED): {"sharing.timeSlicing"},
    ("gke", SLICED): {"sharing.timeSlicing"},
}
"""What each cloud has no field for, so that something stands in; cutting by GKE needs nothing of ours."""


def by_pool(result: Result) -> dict[tuple[str, str], Document]:
    """Return the pools of a document by (provider, pool)."""
    providers = {key: provider for provider, key in CLUSTERS.items()}
    return {
        (providers[cluster["cluster"]], pool.get("pool") or pool["name"]): pool
        for cluster in result.json()["clusters"]
        for pool in cluster["pools"]
    }


def proven(pool: Document) -> list[int]:
    """Return what was counted on each node of a pool."""
    return [node["allocatable"]["nvidia.com/gpu"] for node in pool["proof"]["nodes"]]


def cloud_writes(gpukube: Gpukube) -> list[str]:
    """List what the last command changed in any of the clouds; some of AWS are asked by POST, so by their action."""
    return [
        f"{request['service']} {request['method']} {request['path']}"
        for request in daemon.requests_since(gpukube.info, gpukube.mark)
        if request["service"] in SERVICES.values() and request["method"] != "GET" and not is_question(request)
    ]


def is_question(request: Document) -> bool:
    """Return whether a request that is no GET asks only."""
    body = request["body"] if isinstance(request["body"], dict) else {}
    action = str(body.get("Action") or request["headers"].get("x-amz-target", "").rpartition(".")[2])
    reading = action.startswith(("Describe", "Get", "List"))
    return reading or str(request["path"]).endswith(("/listClusterUserCredential", "/token"))


def test_plan_when_nothing_is_there_then_each_cloud_with_its_machine_its_devices_and_what_stands_in(
    gpukube: Gpukube,
) -> None:
    planned = gpukube("pool", "plan", "-f", SPEC, "-o", "json")
    pools = by_pool(planned)
    assert planned.code == 0
    assert {key: pool["instanceType"] for key, pool in pools.items()} == MACHINES
    assert {key: pool["devices"]["max"] for key, pool in pools.items()} == {
        (provider, name): {"nvidia.com/gpu": sum(DEVICES[name])} for provider, name in MACHINES
    }
    assert {key: set(pool["fidelity"]) for key, pool in pools.items()} == INEXACT
    told = [how for pool in pools.values() for how in pool["fidelity"].values()]
    assert all(how["fidelity"] == "emulated" and how["substitute"] and how["reason"] for how in told)
    assert cloud_writes(gpukube) == []


def test_plan_when_shown_as_a_table_then_what_stands_in_is_below_its_pool(gpukube: Gpukube) -> None:
    planned = gpukube("pool", "plan", "-f", SPEC)
    assert planned.code == 0
    eks, aks, gke = (planned.out.partition(f"{key}  {provider} ")[2] for provider, key in CLUSTERS.items())
    eks, aks = eks.partition(CLUSTERS["aks"])[0], aks.partition(CLUSTERS["gke"])[0]
    assert "how     sharing.mig.single: done by the GPU Operator's MIG manager" in eks
    assert "how     sharing.mig.single: done by AKS" in aks
    assert "sharing.mig" not in gke
    for section in (eks, aks, gke):
        assert section.count("how     sharing.timeSlicing: done by") == 1
        assert "devices nvidia.com/gpu: 56 per node, 56 in all" in section
        assert "devices nvidia.com/gpu: 4 per node, 8 in all" in section


def test_create_when_run_then_the_devices_are_proven_on_each_cloud_and_nothing_is_left_to_do(gpukube: Gpukube) -> None:
    created = gpukube.made("-f", SPEC, "-o", "json")
    assert {key: proven(pool) for key, pool in by_pool(created).items()} == {key: DEVICES[key[1]] for key in MACHINES}

    same = gpukube("pool", "plan", "diff", "-f", SPEC)
    assert (same.code, same.out) == (0, "no differences\n")

    again = gpukube("pool", "create", "-f", SPEC, "-o", "json")
    assert (again.code, gpukube.writes(), cloud_writes(gpukube)) == (0, [], [])
    assert {pool["outcome"] for pool in again.pools()} == {"unchanged"}

    verified = gpukube("pool", "verify", "-f", SPEC, "-o", "json")
    assert (verified.code, cloud_writes(gpukube)) == (0, [])
    assert {key: proven(pool) for key, pool in by_pool(verified).items()} == {key: DEVICES[key[1]] for key in MACHINES}

    listed = gpukube("pool", "list", "-f", SPEC, "-o", "json")
    assert listed.code == 0
    assert {key: pool["instanceType"] for key, pool in by_pool(listed).items()} == MACHINES


FAULTS: dict[str, tuple[str, Document, str]] = {
    "eks forbids": ("eks", {"action": "status", "status": 403, "code": "AccessDeniedException"}, "error[permission]"),
    "aks forbids": ("aks", {"action": "status", "status": 403, "code": "AuthorizationFailed"}, "error[permission]"),
    "gke forbids": ("gke", {"action": "status", "status": 403}, "error[permission]"),
    "eks hangs up": ("eks", {"action": "drop-before"}, "error[no-answer]"),
}


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", FAULTS)
def test_create_when_one_cloud_fails_then_the_others_are_proven_and_three(name: str, gpukube: Gpukube) -> None:
    failing, fault, said = FAULTS[name]
    daemon.add_fault(gpukube.info, service=SERVICES[failing], times=0, **fault)
    mixed = gpukube("pool", "create", "-f", SPEC, "-o", "json")
    assert (mixed.code, mixed.json()["exitCode"]) == (3, 3)
    outcomes = {key: pool["outcome"] for key, pool in by_pool(mixed).items()}
    assert outcomes == {key: "not-attempted" if key[0] == failing else "done" for key in MACHINES}
    counted = {key: proven(pool) for key, pool in by_pool(mixed).items() if key[0] != failing}
    assert counted == {key: DEVICES[key[1]] for key in MACHINES if key[0] != failing}
    table = gpukube("pool", "list", "-f", SPEC)
    assert f"{CLUSTERS[failing]}: {said}" in table.out, table.out


def test_create_when_real_credentials_are_around_then_no_cloud_sees_them_and_none_is_missed(
    gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AZURE_CLIENT_SECRET")
    for name in (*names, "AZURE_CLIENT_ID", "AZURE_TENANT_ID", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG"):
        monkeypatch.setenv(name, "r3alS3cret")  # no such profile, no such file: looking at them would end it
    created = gpukube("pool", "create", "-f", SPEC)
    assert created.code == 0, created.out + created.err
    assert created.out.count("nvidia.com/gpu: 56 verified on 1 node") == len(CLUSTERS)
    requests = daemon.requests_since(gpukube.info)
    assert {"aws", "arm", "gke", "kube"} <= {str(request["service"]) for request in requests}
    assert not [request for request in requests if request["status"] == 401 or "r3alS3cret" in str(request)]


@pytest.mark.turns(3)
@pytest.mark.parametrize("lost", CLUSTERS)
def test_plan_when_one_cloud_cannot_be_reached_then_the_others_are_planned_and_it_is_named(
    lost: str, gpukube: Gpukube, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.add_cluster(gpukube.info, SUBSCRIPTION, "ml", "train")
    daemon.add_eks_cluster(gpukube.info, "111122223333", "us-east-1", "train")
    daemon.add_gke_cluster(gpukube.info, "ml-prod", "us-central1", "train")
    found = {"eks": gpukube.info.aws_url, "aks": gpukube.info.arm_url, "gke": gpukube.info.gke_url}
    for provider, url in {**found, lost: "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(f"GPUKUBE_{provider.upper()}_ENDPOINT", url)
    monkeypatch.setenv("GPUKUBE_SANDBOX_SECRET", gpukube.info.secret)
    words = ("pool", "plan", "-f", SPEC, "--chart", gpukube.info.charts_url)
    planned = gpukube(*words, sandbox=False)  # --sandbox has endpoints of its own
    assert planned.code == 1, planned.out + planned.err
    assert f"{CLUSTERS[lost]}: error[unreachable]" in planned.out
    assert "127.0.0.1" in planned.out
    assert "Traceback" not in planned.out + planned.err
    (summary,) = (line for line in planned.out.splitlines() if line.startswith("plan: "))
    assert summary.startswith("plan: 4 to create, ")
    assert "2 unknown" in summary
    assert "1 cluster could not be read" in planned.out
