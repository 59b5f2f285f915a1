"""Manifests for pools: the right names, sizes and tolerations, and refusals of what a pool cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpukube.cluster.proof.probe import PROBE_IMAGE
from gpukube.core.jsontree import at, items, text, tree
from gpukube.core.yamltext import parse_documents
from gpukube.errors import SpecError
from gpukube.workload.claims import read_claims
from gpukube.workload.fit.nodes import Node
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.fit.predicates import why_not
from gpukube.workload.manifests import read_manifests
from gpukube.workload.render.intent import CUDA_IMAGE, Intent, usual_name
from gpukube.workload.render.manifests import KINDS, Rendered, render
from gpukube.workload.render.text import Flow, Noted, plain, write_documents
from gpukube.workload.templates import pod_templates
from tests.unit.workload.schemas import problems
from tests.unit.workload.specs import all_offers, offers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.templates import PodTemplate

RAY = ("raycluster", "rayjob", "rayservice")
CLUSTER_OF = {"RayCluster": "spec", "RayJob": "rayClusterSpec", "RayService": "rayClusterConfig"}


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    return all_offers(tmp_path_factory.mktemp("pools"))


def rendered(pools: Mapping[str, PoolOffer], pool: str, kind: str, **options: Any) -> Rendered:  # noqa: ANN401 - any of Intent's
    beside = [offer for name, offer in pools.items() if name.partition("/")[0] == pool.partition("/")[0]]
    resources = sorted(pools[pool].gpus)
    if len(resources) > 1 and kind != "kueue":
        options.setdefault("resource", resources[0])
    return render(Intent(kind=kind, **options), pools[pool], beside)


def templates(made: Rendered) -> list[PodTemplate]:
    reading = read_manifests(made.text, "-")
    assert reading.findings == ()
    return [template for manifest in reading.manifests for template in pod_templates(manifest)]


def ray_cluster(made: Rendered) -> dict[str, Any]:
    (document,) = made.documents
    spec: dict[str, Any] = tree(document, "spec")
    place = CLUSTER_OF[text(document, "kind")]
    return spec if place == "spec" else spec[place]


@pytest.fixture(scope="module")
def every(pools: dict[str, PoolOffer]) -> dict[tuple[str, str], Rendered]:
    """Render all kinds for all pools; no queue for claims."""
    return {
        (pool, kind): rendered(pools, pool, kind)
        for pool, offer in pools.items()
        for kind in KINDS
        if kind != "kueue" or not offer.by_claims
    }


def test_rendered_when_read_again_then_the_same_and_known_to_the_apis(every: dict[tuple[str, str], Rendered]) -> None:
    for (pool, kind), made in every.items():
        assert tuple(parse_documents(made.text)) == made.documents, (pool, kind)
        assert [found for document in made.documents for found in problems(document)] == [], (pool, kind)


def test_rendered_when_scheduled_then_as_many_as_it_says_fill_a_node(
    pools: dict[str, PoolOffer], every: dict[tuple[str, str], Rendered]
) -> None:
    for (pool, kind), made in every.items():
        for template in templates(made):
            offer = pools[pool]
            if template.role in {"ray-head", "ray-submitter"}:
                continue
            node = Node(
                name="a",
                cluster="",
                shape=offer.real,
                labels=offer.real.labels,
                tolerates_resources=False,
            )
            claims = read_claims(made.documents).of_pod(template.spec, "")
            pod = read_pod(template.metadata, template.spec, claims=claims)
            count = 0
            while why_not(pod, node) is None:
                node.take(pod)
                count += 1
            assert f"room for {count} such" in made.text, (pool, kind)
            assert template.replicas.most <= count * offer.desired.target.nodes.maximum, (pool, kind)


def test_companions_when_scheduled_then_not_on_the_gpu_pools(pools: dict[str, PoolOffer], tmp_path: Path) -> None:
    bare = offers(
        tmp_path,
        "{name: bare, clusters: [train-aks], gpu: {model: T4, count: 1}, nodes: {count: 1}, gpuTaint: false}",
        "{name: other, clusters: [train-aks], gpu: {model: T4, count: 1}, nodes: {count: 1}, gpuTaint: false}",
    )
    for known, pool in ((pools, "train-aks/mixed"), (pools, "train-gke/whole"), (bare, "train-aks/bare")):
        for kind in RAY:
            roles = []
            for template in templates(rendered(known, pool, kind)):
                if template.role != "ray-worker":
                    roles.append(template.role)
                    for offer in known.values():
                        node = Node(name="a", cluster="", shape=offer.real, labels=offer.real.labels,
                                    tolerates_resources=True)  # fmt: skip
                        assert why_not(read_pod(template.metadata, template.spec), node), (pool, kind, offer.name)
            assert "ray-head" in roles
    (job,) = rendered(bare, "train-aks/bare", "rayjob").documents
    assert text(job, "spec", "submitterPodTemplate", "spec", "restartPolicy") == "Never"


DEVICES: dict[str, tuple[str, str]] = {
    # Resource that pods request, and a comment on its line.
    "train-eks/whole": ("nvidia.com/gpu", ""),
    "train-aks/single": ("nvidia.com/gpu", "each 1g.5gb instance counts as one GPU"),
    "train-gke/single": ("nvidia.com/gpu", "each 1g.5gb instance counts as one GPU"),
    "train-aks/mixed": ("nvidia.com/mig-1g.5gb", "each MIG profile is a separate resource"),
    "train-eks/sliced": ("nvidia.com/gpu", "one of 4 shares of a GPU; memory is not divided"),
    "train-eks/renamed": ("nvidia.com/gpu.shared", "one of 4 shares of a GPU"),
    "train-gke/mps": ("nvidia.com/gpu", "by MPS"),
}


@pytest.mark.parametrize("pool", DEVICES)
def test_resource_when_gpus_are_cut_or_shared_then_its_name_there(pools: dict[str, PoolOffer], pool: str) -> None:
    name, comment = DEVICES[pool]
    made = rendered(pools, pool, "pod")
    (pod,) = made.documents
    resources = tree(pod, "spec", "containers", 0, "resources")
    assert at(resources, "limits", name) == at(resources, "requests", name) == 1
    assert comment in made.text


TOLERATIONS: dict[str, set[str]] = {
    "train-eks/whole": {"nvidia.com/gpu"},
    "train-aks/mixed": {"nvidia.com/gpu"},
    "train-eks/renamed": {"nvidia.com/gpu"},
    "train-aks/spot": {"nvidia.com/gpu", "kubernetes.azure.com/scalesetpriority"},
    "train-eks/spot": {"nvidia.com/gpu"},
    "train-aks/tainted": {"sku"},
    "train-gke/tainted": {"nvidia.com/gpu", "sku"},
    "train-gke/queued": {"nvidia.com/gpu", "cloud.google.com/gke-queued"},
}


@pytest.mark.parametrize("pool", TOLERATIONS)
def test_tolerations_when_nodes_are_tainted_then_all_written(pools: dict[str, PoolOffer], pool: str) -> None:
    (pod,) = rendered(pools, pool, "pod").documents
    assert {text(item, "key") for item in items(pod, "spec", "tolerations")} == TOLERATIONS[pool]


def test_rendered_when_on_three_clouds_then_only_selector_taints_and_sizes_differ(pools: dict[str, PoolOffer]) -> None:
    for kind in ("pod", "deployment", "raycluster", "rayjob"):
        bare = []
        for cloud in ("eks", "aks", "gke"):
            documents = [*rendered(pools, f"train-{cloud}/spot", kind).documents]
            bare.append(str([without(document, "nodeSelector", "tolerations", "resources") for document in documents]))
        assert bare[0] == bare[1] == bare[2], kind


def without(value: object, *keys: str) -> object:
    if isinstance(value, dict):
        return {key: without(item, *keys) for key, item in value.items() if key not in keys}
    return [without(item, *keys) for item in value] if isinstance(value, list) else value


BOUNDS: dict[str, tuple[str, dict[str, int], tuple[int, int, int], bool]] = {
    # Pool, options -> replicas, least, most, and whether Ray scales the group.
    "autoscaled": ("train-eks/whole", {}, (0, 0, 32), True),
    "autoscaled, four GPUs each": ("train-eks/whole", {"gpus": 4}, (0, 0, 8), True),
    "autoscaled, a fixed group": ("train-eks/whole", {"replicas": 3}, (3, 3, 3), False),
    "autoscaled, own bounds": ("train-eks/whole", {"least": 1, "most": 4}, (1, 1, 4), True),
    "autoscaled, own bounds and size": ("train-eks/whole", {"least": 1, "most": 4, "replicas": 2}, (2, 1, 4), True),
    "fixed": ("train-eks/sliced", {}, (1, 1, 1), False),
    "fixed, all of it": ("train-eks/sliced", {"replicas": 8}, (8, 8, 8), False),
    "fixed, scaled by Ray": ("train-eks/sliced", {"least": 0}, (0, 0, 8), True),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_group_when_the_pool_has_nodes_then_no_more_workers(pools: dict[str, PoolOffer], case: str) -> None:
    pool, options, bounds, scaled = BOUNDS[case]
    for kind in RAY:
        cluster = ray_cluster(rendered(pools, pool, kind, **options))
        (group,) = cluster["workerGroupSpecs"]
        assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == bounds
        assert cluster.get("enableInTreeAutoscaling", False) is scaled
        assert text(cluster, "autoscalerOptions", "version") == ("v2" if scaled else "")


START_PARAMS: dict[str, dict[str, str]] = {
    "train-eks/whole": {},
    "train-aks/single": {},
    "train-aks/mixed": {"num-gpus": "1"},
    "train-eks/renamed": {"num-gpus": "1"},
}


@pytest.mark.parametrize("pool", START_PARAMS)
def test_ray_when_its_autoscaler_does_not_know_the_resource_then_told(pools: dict[str, PoolOffer], pool: str) -> None:
    cluster = ray_cluster(rendered(pools, pool, "raycluster"))
    assert cluster["workerGroupSpecs"][0]["rayStartParams"] == START_PARAMS[pool]
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0", "num-gpus": "0"}
    head = at(cluster, "headGroupSpec", "template", "spec", "containers", 0)
    assert items(head, "env") == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


CUT = (
    "{name: cut, clusters: [train-eks], gpu: {model: A100-40GB, count: 8}, nodes: {count: 1}, "
    "sharing: {mig: {layout: [3g.20gb, 2g.10gb, 2g.10gb], strategy: mixed}}, devicePlugin: {owner: dra}}"
)


def test_claims_when_the_dra_driver_publishes_the_gpus_then_a_template_for_each_pod(
    pools: dict[str, PoolOffer],
) -> None:
    claim, job = rendered(pools, "train-gke/claims", "job", gpus=3, replicas=2, namespace="ml").documents
    assert at(claim, "metadata") == {"name": "claims", "namespace": "ml"}
    (request,) = items(claim, "spec", "spec", "devices", "requests")
    assert request == {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 3}}
    spec = at(job, "spec", "template", "spec")
    assert at(spec, "resourceClaims") == [{"name": "gpu", "resourceClaimTemplateName": "claims"}]
    resources = at(spec, "containers", 0, "resources")
    assert at(resources, "claims") == [{"name": "gpu"}]
    assert {*tree(resources, "limits"), *tree(resources, "requests")} == {"cpu", "memory"}
    assert "nvidia.com/gpu" in {text(item, "key") for item in items(spec, "tolerations")}


def test_claims_when_gpus_are_cut_then_by_profile_and_of_one_gpu_if_asked(tmp_path: Path) -> None:
    cut = offers(tmp_path, CUT)
    options = {"resource": "mig.nvidia.com/2g.10gb", "gpus": 2, "same_gpu": True}
    made = rendered(cut, "train-eks/cut", "pod", **options)
    devices = at(made.documents[0], "spec", "spec", "devices")
    assert at(devices, "requests", 0, "exactly") == {
        "deviceClassName": "mig.nvidia.com",
        "count": 2,
        "selectors": [{"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '2g.10gb'"}}],
    }
    assert at(devices, "constraints") == [{"requests": ["gpu"], "matchAttribute": "gpu.nvidia.com/parentUUID"}]
    assert "room for 8 such" in made.text
    with pytest.raises(SpecError, match="a GPU of train-eks/cut has 2"):
        rendered(cut, "train-eks/cut", "pod", **{**options, "gpus": 3})


@pytest.mark.parametrize("kind", RAY)
def test_ray_when_pods_claim_their_gpus_then_told_how_many(pools: dict[str, PoolOffer], kind: str) -> None:
    claim, document = rendered(pools, "train-eks/claims", kind, gpus=2).documents
    place = CLUSTER_OF[text(document, "kind")]
    group = at(document, "spec", *(() if place == "spec" else (place,)), "workerGroupSpecs", 0)
    assert at(group, "rayStartParams", "num-gpus") == "2"
    assert at(group, "template", "spec", "resourceClaims", 0, "resourceClaimTemplateName") == at(
        claim, "metadata", "name"
    )


def test_claims_when_they_cannot_be_so_then_refused(pools: dict[str, PoolOffer]) -> None:
    with pytest.raises(SpecError, match="under a name of its own configuration"):
        rendered(pools, "train-eks/claims", "kueue")
    for pool in ("train-eks/claims", "train-aks/single"):
        with pytest.raises(SpecError, match="--same-gpu is for MIG devices"):
            rendered(pools, pool, "pod", same_gpu=True)


def test_ray_version_when_an_image_is_given_then_its_own(pools: dict[str, PoolOffer]) -> None:
    versions = {"rayproject/ray:2.57.1-py310-gpu": "2.57.1", "registry:5000/ours:v2.56.0": "2.56.0"}
    for image, version in versions.items():
        assert ray_cluster(rendered(pools, "train-eks/whole", "raycluster", image=image))["rayVersion"] == version
    made = rendered(pools, "train-eks/whole", "raycluster", image="registry:5000/ours:stable")
    assert "# must be the version of Ray in the image" in made.text


def test_rayservice_when_two_clusters_do_not_fit_then_no_second_at_an_upgrade(pools: dict[str, PoolOffer]) -> None:
    strategies = {}
    for most in (16, 17):
        (service,) = rendered(pools, "train-eks/whole", "rayservice", most=most).documents
        strategies[most] = text(service, "spec", "upgradeStrategy", "type")
    assert strategies == {16: "NewCluster", 17: "None"}


STRATEGIES: dict[str, tuple[str, int, object]] = {
    "room for one more": ("train-eks/whole", 2, None),
    "one pod fills the pool": ("train-aks/tainted", 1, {"type": "Recreate"}),
    "the pool is full": (
        "train-aks/spot", 3, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STRATEGIES)
def test_deployment_when_the_pool_is_full_then_rolls_without_surge(pools: dict[str, PoolOffer], case: str) -> None:
    pool, replicas, strategy = STRATEGIES[case]
    (deployment,) = rendered(pools, pool, "deployment", replicas=replicas).documents
    assert at(deployment, "spec", "strategy") == strategy


def test_pod_when_it_has_several_gpus_then_room_for_them_to_talk(pools: dict[str, PoolOffer]) -> None:
    volumes = []
    for gpus in (1, 2):
        (pod,) = rendered(pools, "train-eks/whole", "pod", gpus=gpus).documents
        volumes.append(items(pod, "spec", "volumes"))
        assert bool(items(pod, "spec", "containers", 0, "volumeMounts")) == bool(volumes[-1])
    assert volumes == [[], [{"name": "shm", "emptyDir": {"medium": "Memory"}}]]


def test_job_when_larger_than_the_pool_then_in_turns(pools: dict[str, PoolOffer]) -> None:
    (job,) = rendered(pools, "train-aks/spot", "job", replicas=10).documents
    assert (at(job, "spec", "completions"), at(job, "spec", "parallelism")) == (10, 3)


def test_kueue_when_the_pool_has_a_maximum_then_that_is_the_quota(pools: dict[str, PoolOffer]) -> None:
    made = rendered(pools, "train-eks/whole", "kueue", namespace="team")
    flavor, queue, local = made.documents
    real = pools["train-eks/whole"].real
    quotas = {
        quota["name"]: quota["nominalQuota"]
        for quota in at(queue, "spec", "resourceGroups", 0, "flavors", 0, "resources")  # type: ignore[attr-defined]
    }
    assert quotas["nvidia.com/gpu"] == 32
    assert quotas["cpu"] == f"{(real.cpu or 0) * 4}m"
    assert at(flavor, "spec", "nodeLabels") == pools["train-eks/whole"].selector
    assert "namespace" not in tree(queue, "metadata")
    assert text(local, "metadata", "namespace") == "team"
    assert "kueue.x-k8s.io/queue-name: whole" in made.notes[-1]


REFUSED: dict[str, tuple[str, str, dict[str, Any], str, str]] = {
    # Pool, kind, options -> where and what.
    "more GPUs than a node": ("train-eks/whole", "pod", {"gpus": 9}, "--gpus", "has 8 nvidia.com/gpu"),
    "two shares at once": ("train-gke/sliced", "pod", {"gpus": 2}, "--gpus", "at most one share"),
    "two shares of MPS": ("train-eks/mps", "job", {"gpus": 2}, "--gpus", "at most one share"),
    "several profiles": ("train-eks/layout", "pod", {"resource": ""}, "--resource", "several kinds of devices"),
    "another resource": (
        "train-aks/mixed", "pod", {"resource": "nvidia.com/mig1g.5gb"}, "--resource", 'no "nvidia.com/mig1g.5gb"',
    ),
    "more processors than a node": ("train-eks/sliced", "pod", {"cpu": "4"}, "--cpu", "has 3670m for pods"),
    "more memory than a node": ("train-eks/sliced", "pod", {"memory": "16Gi"}, "--memory", "for pods"),
    "no quantity": ("train-eks/sliced", "pod", {"cpu": "many"}, "--cpu", '"many" is not an amount'),
    "a pool too small": ("train-eks/sliced", "deployment", {"replicas": 9}, "--replicas", "room for 8 such pods"),
    "a Ray group too large": ("train-eks/whole", "raycluster", {"most": 33}, "--max", "room for 32 such pods"),
    "bounds the wrong way": ("train-eks/whole", "rayjob", {"least": 3, "most": 2}, "--min", "more than --max 2"),
    "a size out of the bounds": (
        "train-eks/whole", "rayjob", {"least": 3, "most": 4, "replicas": 1}, "--replicas", "3 to 4 workers",
    ),
    "bounds of a job": ("train-eks/whole", "job", {"most": 3}, "--max", "--max is not for job"),
    "a command for a cluster": ("train-eks/whole", "raycluster", {"command": ("a",)}, "COMMAND", "runs no command"),
    "a runtime environment of a pod": (
        "train-eks/whole", "pod", {"runtime_env": {"pip": ["a"]}}, "--runtime-env", "not for pod",
    ),
    "a directory of a cluster": (
        "train-eks/whole", "raycluster", {"working_dir": "https://a/b.zip"}, "--working-dir", "not for raycluster",
    ),
    "a directory of this machine": (
        "train-eks/whole", "rayjob", {"working_dir": "./code"}, "--working-dir", "not the address of an archive",
    ),
    "a directory twice": (
        "train-eks/whole",
        "rayservice",
        {"working_dir": "https://a/b.zip", "runtime_env": {"working_dir": "https://a/c.zip"}},
        "--working-dir",
        "also has a working_dir",
    ),
    "an image for a queue": ("train-eks/whole", "kueue", {"image": "a"}, "--image", "not for kueue"),
    "no name": ("train-eks/whole", "pod", {"name": "A_b"}, "--name", "not a name"),
    "more than the autoscaler expects of a first node": (
        "train-aks/single", "pod", {"gpus": 9}, "--gpus", "expects 8 nvidia.com/gpu of a node, but a pod requests 9",
    ),
    "no GPU": ("train-eks/whole", "pod", {"gpus": 0}, "--gpus", "--gpus is 0"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_render_when_the_pool_cannot_do_it_then_refused(pools: dict[str, PoolOffer], case: str) -> None:
    pool, kind, options, where, message = REFUSED[case]
    with pytest.raises(SpecError) as caught:
        render(Intent(kind=kind, **options), pools[pool], ())
    (problem,) = caught.value.diagnostics
    assert problem.where.source == where
    assert message in problem.seen
    assert problem.fix


NOTES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "two shares that do no more": ("train-aks/sliced", "pod", {"gpus": 2}, "provide no more compute than one"),
    "two instances": ("train-aks/mixed", "pod", {"gpus": 2}, "uses one of the 2 MIG instances"),
    "somebody else's plugin": ("train-aks/nobody", "pod", {}, "depends on the plugin that you install"),
    "pods of a network that is not known": ("train-aks/mixed", "pod", {}, "write maxPodsPerNode"),
    "nodes for requests only": (
        "train-gke/queued",
        "job",
        {},
        "that requires a ProvisioningRequest, by hand or by Kueue",
    ),
    "KubeRay": ("train-aks/whole", "rayjob", {}, "requires KubeRay"),
}


@pytest.mark.parametrize("case", NOTES)
def test_notes_when_there_is_something_to_know_then_told(pools: dict[str, PoolOffer], case: str) -> None:
    pool, kind, options, note = NOTES[case]
    assert any(note in one for one in rendered(pools, pool, kind, **options).notes)


def test_notes_when_all_is_plain_then_none(pools: dict[str, PoolOffer]) -> None:
    assert rendered(pools, "train-eks/whole", "pod").notes == ()


def test_name_when_a_pool_has_an_odd_one_then_kubernetes_takes_it() -> None:
    names = {"a100": "a100", "4x_T4": "gpu-4x-t4", "A" * 60: "a" * 47, "-": "gpu"}
    assert {name: usual_name(name) for name in names} == names


def test_image_when_not_given_then_the_one_that_probes_run() -> None:
    assert CUDA_IMAGE == PROBE_IMAGE


def test_text_when_written_then_every_value_comes_back() -> None:
    values = [
        "yes",
        "1",
        "1e3",
        "0o7",
        "a: b",
        "a #b",
        "-L",
        "",
        " a",
        "{",
        "é",
        "a\nb",
        "a\nb\n",
        "a\n\n  b\n",
        " a\nb",
        "a\n\n",
        "a \n",
        "null",
        "~",
        "2024-01-01",
        'a"b',
    ]
    document = {
        "plain": dict(enumerate_keys(values)),
        "list": [*values],
        "objects": [{"a": 1, "b": {"c": True}}, Flow(key="a", value=["yes", "b"])],
        "empty": {},
        "none": [],
        "on": Noted("x", "comment"),
    }
    text_of = write_documents([document, document], ["head"])
    assert list(yaml.safe_load_all(text_of)) == [plain(document)] * 2
    assert "# comment" in text_of
    assert text_of.startswith("# head\n")


def enumerate_keys(values: list[str]) -> Iterator[tuple[str, str]]:
    return ((f"k{index}", value) for index, value in enumerate(values))
