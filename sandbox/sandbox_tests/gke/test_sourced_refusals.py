"""Requests that the real services refuse, each with the public source of the rule or of the words."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx
import pytest

from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.world import World
from sandbox_tests.gke.clients import CLUSTER, NAME, PROJECT, ZONE, gpu_pool, pool_of, shared, t4_pool

if TYPE_CHECKING:
    from sandbox_tests.gke.clients import Json

REFERENCE = "https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools"
NODE_CONFIG = "https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/NodeConfig"
KUBELET = f"{NODE_CONFIG}#NodeKubeletConfig"
LINUX = f"{NODE_CONFIG}#LinuxNodeConfig"
CONFIDENTIAL = "https://cloud.google.com/kubernetes-engine/docs/how-to/gpus-confidential-nodes"
GITHUB = "https://github.com/"
TERRAFORM = f"{GITHUB}hashicorp/terraform-provider-google/"
MODULES = f"{GITHUB}terraform-google-modules/"


@dataclass(frozen=True)
class Row:
    """One request and its refusal.

    Attributes:
        words: A piece of the message.
        source: Where the rule or the words are public.
        path: What is asked for; a POST if there is a body, else a GET.
    """

    words: str
    source: str
    path: str = f"/v1/{CLUSTER}/nodePools"
    body: Json | None = None
    status: int = 400
    code: str = "INVALID_ARGUMENT"
    query: dict[str, str] = field(default_factory=dict)


def made(pool: Json, words: str, source: str) -> Row:
    return Row(words, source, body={"nodePool": pool})


def t4(words: str, source: str, **config: object) -> Row:
    return made(t4_pool("p", 1, **config), words, source)


def kubelet(words: str, **fields: object) -> Row:
    return t4(words, KUBELET, kubelet_config=fields)


def scaled(words: str, source: str, **limits: object) -> Row:
    return made(t4_pool("p") | {"autoscaling": {"enabled": True} | limits}, words, source)


def blue_green(words: str, **policy: object) -> Row:
    settings = {"strategy": "BLUE_GREEN", "blue_green_settings": policy}
    return made(t4_pool("p") | {"upgrade_settings": settings}, words, f"{REFERENCE}#BlueGreenSettings")


TAINT = {"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}
E2 = "e2-standard-4"
MARKS = {
    "a name of capitals": made(
        t4_pool("primaryPool"),
        'Invalid value for field "node_pool.name": "primaryPool". Must be a match of regex '
        "'(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)'",
        f"{GITHUB}pulumi/pulumi-gcp/issues/1510",
    ),
    "a label of Kubernetes": t4(
        "Applying kubernetes label is not allowed: node.kubernetes.io/x.",
        f"{TERRAFORM}issues/6003",
        labels={"node.kubernetes.io/x": "y"},
    ),
    "a label of GKE": t4(
        'Node labels with key "cloud.google.com/gke-accelerator" are managed by GKE or Kubernetes and must not be '
        "manually specified.",
        f"{TERRAFORM}pull/19677",
        labels={"cloud.google.com/gke-accelerator": "y"},
    ),
    "labels too long": t4("1024 characters", NODE_CONFIG, labels={f"k{at}": "v" * 60 for at in range(20)}),
    "a taint twice": t4(
        "Found more than one taint with key nvidia.com/gpu and effect NO_SCHEDULE",
        f"{TERRAFORM}issues/7928",
        taints=[TAINT | {"value": "present"}, TAINT | {"value": "other"}],
    ),
    "a resource label of capitals": t4(
        "It must only contain lowercase letters ([a-z]), numeric characters ([0-9]), underscores (_) and dashes (-). "
        "International characters are allowed.",
        f"{GITHUB}kyma-project/kyma/issues/4307",
        resource_labels={"team": "UP"},
    ),
    "a resource label whose key is of capitals": t4(
        "It must only contain lowercase letters",
        f"{GITHUB}cloudfoundry-incubator/kubo-deployment/issues/159",
        resource_labels={"Upper": "x"},
    ),
    "a resource label that begins with a digit": t4(
        "It must begin with a letter",
        f"{GITHUB}cloudfoundry-incubator/kubo-deployment/issues/159",
        resource_labels={"1a": "x"},
    ),
    "a resource label of 64": t4(
        "no longer than 63 characters",
        "https://cloud.google.com/resource-manager/docs/labels-overview",
        resource_labels={"a": "x" * 64},
    ),
    "65 resource labels": t4(
        "limited to 64",
        "https://cloud.google.com/resource-manager/docs/labels-overview",
        resource_labels={f"k{at}": "v" for at in range(65)},
    ),
    "a network tag of 64": t4(
        f"Invalid tag {'t' * 64}: must be no more than 63 characters.",
        f"{MODULES}terraform-google-kubernetes-engine/issues/1681",
        tags=["t" * 64],
    ),
    "65 network tags": t4(
        "limited to 64",
        "https://cloud.google.com/vpc/docs/add-remove-network-tags",
        tags=[f"t{at}" for at in range(65)],
    ),
    "six resource manager tags": t4(
        "A maximum of 5",
        f"{NODE_CONFIG}#ResourceManagerTags",
        resource_manager_tags={"tags": {f"tagKeys/{at}": f"tagValues/{at}" for at in range(6)}},
    ),
    "a network tag with an underscore": t4(
        "Invalid tag Bad_Tag: must comply with RFC1035", NODE_CONFIG, tags=["Bad_Tag"]
    ),
    "reserved metadata": t4("'kube-env' is reserved", NODE_CONFIG, metadata={"kube-env": "x"}),
    "reserved metadata on the cluster": t4("'cluster-name' is reserved", NODE_CONFIG, metadata={"cluster-name": "x"}),
    "metadata with a blank": t4("Invalid metadata key 'a b'", NODE_CONFIG, metadata={"a b": "x"}),
    "a metadata key of 128": t4("Invalid metadata key", NODE_CONFIG, metadata={"k" * 128: "x"}),
    "a metadata value of 33 KB": t4("no larger than 32 KB", NODE_CONFIG, metadata={"k": "x" * 33 * 1024}),
}
NODES = {
    "a CPU manager policy": kubelet("'dynamic'; allowed are none, static", cpu_manager_policy="dynamic"),
    "a topology manager policy": kubelet("'numa'", topology_manager={"policy": "numa"}),
    "a topology manager scope": kubelet("'node'", topology_manager={"scope": "node"}),
    "a memory manager policy": kubelet("'dynamic'", memory_manager={"policy": "dynamic"}),
    "one process per pod": kubelet("between 1024 and 4194303", pod_pids_limit=1),
    "a CFS period of two seconds": kubelet("'2s'", cpu_cfs_quota_period="2s"),
    "a CFS period that is none": kubelet("'often'", cpu_cfs_quota_period="often"),
    "an image collection at 90 percent": kubelet("between 10 and 85", image_gc_high_threshold_percent=90),
    "an image collection upside down": kubelet(
        "smaller than", image_gc_low_threshold_percent=60, image_gc_high_threshold_percent=50
    ),
    "images that stay three minutes at least": kubelet("'3m'", image_minimum_gc_age="3m"),
    "images that go before they may": kubelet("must be greater than", image_maximum_gc_age="1m"),
    "logs of 1 MiB": kubelet("10Mi to 500Mi", container_log_max_size="1Mi"),
    "one log file": kubelet("between 2 and 10", container_log_max_files=1),
    "a safe sysctl allowed as an unsafe one": kubelet("'vm.swappiness'", allowed_unsafe_sysctls=["vm.swappiness"]),
    "six image pulls at once": kubelet("between 2 and 5", max_parallel_image_pulls=6),
    "a soft eviction of six minutes": kubelet("between 0 and 300", eviction_max_pod_grace_period_seconds=360),
    "a graceful shutdown on demand": kubelet("only valid for Spot VMs", shutdown_grace_period_seconds=30),
    "restarts ten minutes apart": kubelet("'10m'", crash_loop_back_off={"max_container_restart_period": "10m"}),
    "26 registries": t4(
        "At most 25 registry_hosts",
        f"{NODE_CONFIG}#ContainerdConfig",
        containerd_config={"registry_hosts": [{"server": f"r{at}.example.com"} for at in range(26)]},
    ),
    "a sysctl that GKE does not take": t4(
        "'vm.nr_hugepages' is not supported", LINUX, linux_node_config={"sysctls": {"vm.nr_hugepages": "1"}}
    ),
    "few DMA entries": t4(
        "between 65535 and 4194304", LINUX, linux_node_config={"node_vfio_config": {"dma_entry_limit": 1}}
    ),
}
MACHINES = {
    "GPUs on the default machine": made(
        gpu_pool("p", "", "nvidia-tesla-t4", 1),
        "Cannot use default machine type (e2-medium) with GPUs; choose a different machine type.",
        f"{TERRAFORM}issues/8387",
    ),
    "a machine with too little memory": made(
        pool_of("p", "f1-micro"),
        "Node pools of f1-micro machines are not supported due to insufficient memory.",
        f"{GITHUB}nkoson/gke-tutorial/issues/7",
    ),
    "a disk of 9 GB": t4("at least 10 GB", NODE_CONFIG, disk_size_gb=9),
    "a disk of 65,537 GB": t4(
        "at most 65536 GB", "https://cloud.google.com/compute/docs/disks/persistent-disks", disk_size_gb=65537
    ),
    "an image with Docker": t4(
        "Creation of node pools using node images based on Docker container runtimes is not supported in GKE v1.24+",
        f"{GITHUB}NVIDIA/ais-k8s/pull/3",
        image_type="COS",
    ),
    "an image of Windows with Docker": t4(
        "Dockershim has been removed in Kubernetes v1.24.",
        f"{GITHUB}rancher/gke-operator/issues/120",
        image_type="WINDOWS_LTSC",
    ),
    "too many vCPUs for one V100": made(
        gpu_pool("p", "n1-standard-16", "nvidia-tesla-v100", 1),
        "'1'. At most 12 vCPUs can be used along with 1 accelerator cards in an instance.",
        f"{GITHUB}google/deepvariant/issues/70",
    ),
    "an A100 on N1": made(
        gpu_pool("p", "n1-highmem-8", "nvidia-tesla-a100", 1),
        "[nvidia-tesla-a100, n1-highmem-8] features are not compatible for creating instance.",
        f"{GITHUB}skypilot-org/skypilot/issues/212",
    ),
    "Hyperdisk on N2": made(
        pool_of("p", "n2-standard-16", config={"disk_type": "hyperdisk-balanced"}),
        "hyperdisk-balanced disk type cannot be used by n2-standard-16 machine type.",
        f"{GITHUB}rancher/harvester-cloud/issues/249",
    ),
    "Hyperdisk on N1": t4(
        "hyperdisk-balanced disk type cannot be used by n1-standard-4 machine type.",
        f"{GITHUB}cloudfoundry/bosh-google-cpi-release/pull/388",
        disk_type="hyperdisk-balanced",
    ),
    "a persistent disk on N4": made(
        pool_of("p", "n4-standard-2", config={"disk_type": "pd-standard"}),
        "[pd-standard, n4-standard-2] features are not compatible for creating instance.",
        f"{GITHUB}DataBiosphere/dsub/issues/301",
    ),
    "local SSDs on E2": made(
        pool_of("p", E2, config={"local_ssd_count": 1}),
        "[e2-standard-4, local-ssd] features are not compatible for creating instance.",
        f"{TERRAFORM}issues/16020",
    ),
    "local SSDs used in two ways": t4(
        "Can not use local SSDs as volumes when using ephemeral storage backed by local SSDs.",
        f"{MODULES}terraform-google-kubernetes-engine/pull/902",
        local_ssd_count=1,
        ephemeral_storage_local_ssd_config={"local_ssd_count": 1},
    ),
    "a CPU platform that is none": t4(
        "Invalid value for field 'resource.minCpuPlatform': 'Intel Foo'. Invalid CPU platform.",
        f"{GITHUB}related-sciences/gce-github-runner/pull/55",
        min_cpu_platform="Intel Foo",
    ),
    "compact placement on N1": made(
        t4_pool("p") | {"placement_policy": {"type": "COMPACT"}},
        "Placement policy is not applicable to machine type n1-standard-4.",
        f"{GITHUB}dstackai/dstack/issues/2591",
    ),
    "compact placement on E2": made(
        pool_of("p", E2) | {"placement_policy": {"type": "COMPACT"}},
        "Placement policy is not applicable to machine type e2-standard-4.",
        "https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement",
    ),
}
POOLS = {
    "a zone that is none": made(
        t4_pool("p") | {"locations": ["moon-west1-a"]},
        'Location "moon-west1-a" does not exist.',
        f"{MODULES}terraform-google-kubernetes-engine/issues/444",
    ),
    "autoscaling without a maximum": scaled(
        "max_node_count and node_pool_autoscaling.total_max_node_count cannot be both set to zero.",
        f"{MODULES}terraform-google-kubernetes-engine/issues/1554",
    ),
    "autoscaling of both kinds": scaled(
        "mutually exclusive", f"{REFERENCE}#NodePoolAutoscaling", max_node_count=5, total_max_node_count=9
    ),
    "autoscaling upside down": scaled(
        "minimum 3 is greater than maximum 2", f"{TERRAFORM}issues/5441", min_node_count=3, max_node_count=2
    ),
    "a newer version than the control plane's": made(
        t4_pool("p") | {"version": "1.35.0-gke.1"},
        'Node version "1.35.0-gke.1" must not have a greater minor version than master version',
        f"{TERRAFORM}issues/14389",
    ),
    "a batch of one and a half": blue_green("at most 1.0", standard_rollout_policy={"batch_percentage": 1.5}),
    "an empty batch": blue_green("greater than 0.0", standard_rollout_policy={"batch_percentage": 0}),
    "a drain of eight days": blue_green(
        "between 0 and 7 days", autoscaled_rollout_policy={"wait_for_drain_duration": "691200s"}
    ),
    "autoscaled rollout without autoscaling": blue_green(
        "requires node pool autoscaling", autoscaled_rollout_policy={"wait_for_drain_duration": "3600s"}
    ),
    "a soak of eight days": blue_green("Node_pool_soak_duration", node_pool_soak_duration="691200s"),
    "a negative number of huge pages": t4(
        "hugepage_size2m: -1; it must be at least 1",
        f"{NODE_CONFIG}#HugepagesConfig",
        linux_node_config={"hugepages": {"hugepage_size2m": -1}},
    ),
    "confidential nodes with T4": t4(
        "require TDX on a3-highgpu-1g",
        CONFIDENTIAL,
        confidential_nodes={"enabled": True, "confidential_instance_type": "TDX"},
    ),
    "confidential nodes that clients share": made(
        gpu_pool(
            "p",
            "a3-highgpu-1g",
            "nvidia-h100-80gb",
            1,
            confidential_nodes={"enabled": True, "confidential_instance_type": "TDX"},
            gpu_sharing_config=shared("TIME_SHARING", 2),
        ),
        "do not support GPU sharing",
        CONFIDENTIAL,
    ),
    "preloaded images without image streaming": t4(
        "require image streaming",
        f"{TERRAFORM}blob/main/website/docs/r/container_cluster.html.markdown",
        secondary_boot_disks=[{"disk_image": "global/images/x", "mode": "CONTAINER_IMAGE_CACHE"}],
    ),
    "an accelerator network profile of nobody": made(
        t4_pool("p") | {"network_config": {"accelerator_network_profile": "fast"}},
        "allowed is auto",
        f"{REFERENCE}#NodeNetworkConfig",
    ),
    "queued provisioning with reservations": made(
        t4_pool("p", 0) | {"queued_provisioning": {"enabled": True}},
        "Queued_provisioning requires reservation affinity to be set to none",
        f"{TERRAFORM}issues/18341",
    ),
    "a reservation of nobody": Row(
        'reservation "gone" not found for node pool "p"',
        f"{GITHUB}GoogleCloudPlatform/gsutil/issues/1000",
        body={
            "nodePool": gpu_pool(
                "p",
                "a2-highgpu-1g",
                "nvidia-tesla-a100",
                1,
                reservation_affinity={
                    "consume_reservation_type": "SPECIFIC_RESERVATION",
                    "key": "compute.googleapis.com/reservation-name",
                    "values": ["gone"],
                },
            )
        },
        status=404,
        code="NOT_FOUND",
    ),
    "a service account of nobody": t4(
        'Service account "ghost@demo-proj.iam.gserviceaccount.com" does not exist.',
        f"{GITHUB}midl-dev/tezos-on-gke/issues/45",
        service_account="ghost@demo-proj.iam.gserviceaccount.com",
    ),
    "a node group of nobody": Row(
        f"The resource 'projects/{PROJECT}/zones/us-central1-a/nodeGroups/gone' was not found",
        "https://cloud.google.com/compute/docs/reference/rest/v1/nodeGroups/get",
        body={"nodePool": t4_pool("p", 1, node_group="gone")},
        status=404,
        code="NOT_FOUND",
    ),
    "a field that is none": Row(
        "Invalid JSON payload received. Unknown name \"foo\" at 'node_pool.config': Cannot find field.",
        f"{GITHUB}router-for-me/CLIProxyAPI/issues/1531",
        body={"nodePool": {"config": {"foo": 1}}},
    ),
}


def asked(path: str, words: str, source: str, **query: str) -> Row:
    return Row(words, source, path, query=query)


def filtered(text: str, source: str) -> Row:
    words = f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."
    return asked(f"{COMPUTE}/zones", words, source, filter=text)


def unseen(path: str, words: str, source: str) -> Row:
    return Row(words, source, path, status=403, code="PERMISSION_DENIED")


COMPUTE = f"/compute/v1/projects/{PROJECT}"
DISCOVERY = "https://cloud.google.com/compute/docs/reference/rest/v1/machineTypes/list"
PLACES = {
    "clusters of no region": unseen(
        f"/v1/projects/{PROJECT}/locations/moon-west1/clusters",
        "Permission denied on 'locations/moon-west1' (or it may not exist).",
        f"{GITHUB}GoogleCloudPlatform/healthcare/issues/475",
    ),
    "a pool in no zone": unseen(
        f"/v1/projects/{PROJECT}/locations/us-central1-z/clusters/train/nodePools/p",
        "Permission denied on 'locations/us-central1-z' (or it may not exist).",
        f"{GITHUB}GoogleCloudPlatform/healthcare/issues/475",
    ),
    "clusters of no project": unseen(
        "/v1/projects/other/locations/us-central1/clusters",
        'Required "container.clusters.list" permission(s) for "projects/other".',
        f"{GITHUB}jenkinsci/google-kubernetes-engine-plugin/issues/95",
    ),
    "a cluster of no project": unseen(
        "/v1/projects/other/zones/us-central1-b/clusters/train",
        'Required "container.clusters.get" permission(s) for "projects/other/zones/us-central1-b/clusters/train".',
        f"{GITHUB}2i2c-org/infrastructure/issues/488",
    ),
    "versions for no project": unseen(
        "/v1/projects/other/locations/us-central1/serverConfig",
        "The caller does not have permission",
        f"{GITHUB}FairwindsOps/rbac-lookup/issues/14",
    ),
    "a cluster that is none": Row(
        f"Not found: projects/{PROJECT}/locations/us-central1-a/clusters/gone",
        f"{TERRAFORM}issues/7851",
        f"/v1/projects/{PROJECT}/locations/us-central1-a/clusters/gone/nodePools",
        status=404,
        code="NOT_FOUND",
    ),
    "machines of no zone": asked(
        f"{COMPUTE}/zones/us-east1/machineTypes",
        "Invalid value for field 'zone': 'us-east1'. Unknown zone.",
        f"{GITHUB}inspec/inspec-gcp/issues/301",
    ),
    "a region that is none": asked(
        f"{COMPUTE}/regions/global",
        "Invalid value for field 'region': 'global'. Unknown region.",
        f"{GITHUB}GoogleCloudPlatform/terraformer/issues/1928",
    ),
    "a zone as a region": asked(
        f"{COMPUTE}/regions/us-central1-b",
        "Invalid value for field 'region': 'us-central1-b'. Unknown region.",
        f"{GITHUB}kelseyhightower/kubernetes-the-hard-way/pull/166",
    ),
    "zones of no project": Row(
        "The resource 'projects/other' was not found",
        f"{GITHUB}mludvig/gcp-ethereum-miner/issues/1",
        "/compute/v1/projects/other/zones",
        status=404,
        code="NOT_FOUND",
    ),
}
QUERIES = {
    "a parameter that is none": asked(
        f"/v1/{CLUSTER}",
        'Invalid JSON payload received. Unknown name "color": Cannot bind query parameter. Field '
        "'color' could not be found in request message.",
        "https://firebase.google.com/docs/reference/rest/auth",
        color="red",
    ),
    "two expressions by pattern without parentheses": filtered(
        "status eq RUNNING AND name eq somehostname", f"{GITHUB}googleapis/nodejs-compute/issues/48"
    ),
    "an operator of gcloud": filtered("name=a AND name!~gke", f"{GITHUB}googleapis/google-api-go-client/issues/406"),
    "a pattern that is none": filtered("name eq *collector*", f"{GITHUB}prometheus/prometheus/issues/5499"),
    "a field in brackets": filtered("zones[].name=a", f"{GITHUB}googleapis/google-api-go-client/issues/815"),
    "a list in parentheses": filtered("name=(a)", f"{GITHUB}googleapis/google-cloud-go/issues/11318"),
    "501 results": asked(f"{COMPUTE}/zones", "'maxResults': '501'", DISCOVERY, maxResults="501"),
}
ROWS = MARKS | NODES | MACHINES | POOLS | PLACES | QUERIES


@pytest.fixture(scope="module")
def answers() -> dict[str, httpx.Response]:
    """The answer to each row, in one world with one cluster."""

    async def ask() -> dict[str, httpx.Response]:
        world = World(1.0, b"authority")
        await world.ensure_gke_cluster(GkeRequest(PROJECT, ZONE, NAME))
        headers = {"Authorization": f"Bearer {world.secret}"}
        transport = httpx.ASGITransport(world.gke.rest)
        async with httpx.AsyncClient(transport=transport, base_url="http://gke", headers=headers) as client:
            found = {
                name: await client.request("POST" if row.body else "GET", row.path, params=row.query, json=row.body)
                for name, row in ROWS.items()
            }
        await world.reset()
        return found

    return asyncio.run(ask())


@pytest.mark.parametrize("name", ROWS)
def test_request_when_the_service_refuses_it_then_refused_in_its_words(
    answers: dict[str, httpx.Response], name: str
) -> None:
    row, answer = ROWS[name], answers[name]
    error = answer.json().get("error", {})
    assert (answer.status_code, error.get("status")) == (row.status, row.code), answer.text
    assert row.words in error["message"]


def test_refusal_when_gke_has_read_the_request_then_it_names_it(answers: dict[str, httpx.Response]) -> None:
    (info,) = answers["a name of capitals"].json()["error"]["details"]  # seen in pulumi/pulumi-gcp#1510
    assert info["@type"] == "type.googleapis.com/google.rpc.RequestInfo"
    assert info["requestId"].startswith("0x")
    assert answers["a label of GKE"].json()["error"]["details"] != [info]
