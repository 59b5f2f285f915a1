"""`gpukube pool export`: pools of a spec and live ones for other tools, with what these do not hold."""

from __future__ import annotations

import json
import os
import re
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
import yaml
from jsonschema import Draft202012Validator

from gpukube.cluster.names import kind_of
from gpukube.core.exporting import ExportedPool, Losses, shell_command
from gpukube.core.hcl import Block, Expression, block, literal, render
from gpukube.core.values import Disk, Ownership, Promise
from gpukube.engine.exporting import export_text, exporter_of, live_pools
from gpukube.engine.offline import load
from gpukube.engine.plan.prepare import Filters, prepare
from gpukube.errors import SpecError
from gpukube.provider import load_provider
from gpukube.testing.fakes import FakeProvider
from gpukube_aks.export import az
from gpukube_aks.pool.members import native_leaves
from gpukube_eks.pool.translate import with_place
from gpukube_gke.export import gcloud
from gpukube_gke.pool.native import NATIVE as GKE_NATIVE
from gpukube_sandbox import daemon
from sandbox_tests.kube.clients import run_client
from tests.builders import CLUSTER, make_observed, make_target
from tests.cli.harness import EXAMPLES
from tests.unit.gpukube_eks.samples import eks_target
from tests.unit.gpukube_gke.targets import gke_target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpukube.core.values import Desired, Target
    from gpukube.engine.run.session import Session
    from tests.cli.harness import Gpukube

SINGLE = EXAMPLES / "aks-mig-single.yaml"
ADDRESS = "aks:11111111-2222-3333-4444-555555555555/ml/train"
MANAGED = "gpuProfile.nvidia.managementMode"


def exported(target: Target, tool: str) -> tuple[str, Losses]:
    provider, losses = load_provider(target.cluster.provider), Losses()
    desired = provider.desired(target, Ownership("cloud", "none", "", {}, ""), Promise({}, target.nodes))
    return provider.extras.exporters[tool].write(target.cluster, [ExportedPool(desired)], losses), losses


def test_pool_when_a_spec_leaves_nothing_open_then_written_without_a_call(gpukube: Gpukube) -> None:
    done = gpukube("pool", "export", "-f", SINGLE, "--to", "az")
    assert done.code == 0, done.err
    assert [
        request for request in daemon.requests_since(gpukube.info, gpukube.mark) if request["service"] == "arm"
    ] == []
    first, *lines = done.out.splitlines()
    assert first == "#!/bin/sh"
    notes = done.out[: done.out.index("set -eu")]
    assert "gpukube-system/gpukube-nvidia-device-plugin" in notes
    assert "gpukube.io/owner and gpukube.io/pool make a pool gpukube's" in notes
    assert "  --gpu-instance-profile MIG1g \\" in lines


@pytest.mark.parametrize(
    ("address", "target"),
    [
        (ADDRESS, "az"),
        *(("eks:111122223333/us-east-1/train", target) for target in ("aws", "eksctl", "karpenter")),
        ("gke:ml-prod/us-central1/train", "gcloud"),
    ],
)
def test_pool_when_it_is_live_then_refused_by_what_is_made_of_a_spec(
    gpukube: Gpukube, address: str, target: str
) -> None:
    refused = gpukube("pool", "export", "--cluster", address, "--to", target)
    asked = [one for one in daemon.requests_since(gpukube.info, gpukube.mark) if one["service"] != "sandbox"]
    assert (refused.code, refused.out, asked) == (4, "", []), refused.err
    assert f"error[export-target]: live pools are not exported to {target}" in refused.err
    assert f"gpukube pool import --cluster {address} > pools.yaml" in " ".join(refused.err.split())


def test_pool_when_it_is_live_and_nobodys_then_as_it_is_and_without_marks(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    daemon.tamper(gpukube.info, "train", "a100mig", nodeLabels={"team": "vision"}, tags={"cost": "a b"})
    done = gpukube("pool", "export", "--cluster", ADDRESS, "--to", "terraform")
    assert (done.code, gpukube.writes()) == (0, []), done.err
    assert "gpukube.io" not in done.out
    assert '    team = "vision"\n' in done.out
    assert '    cost = "a b"\n' in done.out


def test_pool_when_it_is_live_and_owned_then_with_its_marks(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    live = gpukube("pool", "export", "--cluster", ADDRESS, "--to", "terraform").out
    assert '    "gpukube.io/owner" ' in live.replace("  }", "")
    assert "gpukube.io/owner and gpukube.io/pool make a pool gpukube's" in live


def test_pool_when_it_is_live_then_what_is_not_written_is_named() -> None:
    pools: dict[str, tuple[Target, dict[str, object]]] = {
        "gke": (gke_target(), {"config": {"confidentialNodes": {"enabled": True}, "machineType": "a2-highgpu-1g"}}),
        "aks": (make_target(), {"properties": {"messageOfTheDay": "aGk=", "networkProfile": {"allowedHostPorts": []}}}),
        "eks": (eks_target(), {"remoteAccess": {"ec2SshKey": "ops"}, "status": "ACTIVE"}),
    }
    told = {cloud: live_losses(target, **native) for cloud, (target, native) in pools.items()}
    assert told == {
        "gke": ["config.confidentialNodes of the live pool: not written; see what a plan makes of it"],
        "aks": ["messageOfTheDay of the live pool: not written; see what a plan makes of it"],
        "eks": ["remoteAccess of the live pool: not written; see what a plan makes of it"],
    }


@pytest.mark.parametrize(("advertiser", "release"), [("operator", "gpukube-gpu-operator"), ("", "")])
def test_pool_when_it_is_live_then_its_release_is_the_one_that_its_label_names(advertiser: str, release: str) -> None:
    provider, target = load_provider("eks"), eks_target()
    desired = provider.desired(target, Ownership("cloud", "chart", "", {}, ""), Promise({}, target.nodes))
    labels = {"gpukube.io/advertiser": advertiser} if advertiser else {}
    session = SimpleNamespace(provider=provider)
    (pool,) = live_pools(cast("Session", session), [(make_observed(desired, labels=labels), desired)])
    kind = kind_of(pool.desired.ownership.advertiser)
    assert (kind.name if kind else "") == release


def test_pool_when_a_tag_steers_a_terminal_then_spelled_out(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    daemon.tamper(gpukube.info, "train", "a100mig", tags={"cost": "a\x1b[2Jb"})
    assert '"a\\u001b[2Jb"' in gpukube("pool", "export", "--cluster", ADDRESS, "--to", "terraform").out


def test_plan_when_shown_as_terraforms_then_json_with_the_pools_as_resources(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    plan = json.loads(gpukube("pool", "plan", "-f", SINGLE, "-o", "terraform-json").out)
    (change,) = plan["resource_changes"]
    (resource,) = plan["planned_values"]["root_module"]["resources"]
    assert (change["address"], change["change"]["actions"]) == ("gpukube_pool.train-aks_a100mig", ["no-op"])
    assert resource["values"]["vm_size"] == "Standard_ND96asr_v4"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-f", SINGLE), "no target given"),
        (("-f", SINGLE, "--to", "bicep"), '"bicep" is not an export target'),
        (("-f", SINGLE, "--to", "aws"), "pools of aks cannot be exported to aws"),
        (
            ("-f", EXAMPLES / "three-clouds.yaml", "--to", "az"),
            "the spec has pools on 3 clusters; an export covers one",
        ),
        (("-f", SINGLE, "--pool", "x*", "--to", "az"), "--pool x* matches no pool of the spec"),
        (("--to", "az"), "no spec given"),
        (("--cluster", ADDRESS, "--cluster", f"{ADDRESS}2", "--to", "az"), "pools on 2 clusters"),
    ],
)
def test_export_when_it_is_not_said_what_then_four(gpukube: Gpukube, words: tuple[str, ...], text: str) -> None:
    refused = gpukube("pool", "export", *words)
    assert (refused.code, text in refused.err, refused.out) == (4, True, ""), refused.err


def test_cloud_when_it_exports_nothing_then_the_target_is_refused() -> None:
    with pytest.raises(SpecError, match="pools of fake cannot be exported to az"):
        exporter_of(FakeProvider(), "az")


def test_pool_when_the_tool_cannot_hold_it_then_refused_at_the_field() -> None:
    _, losses = exported(make_target(plugin_owner="cloud"), "az")
    (refused,) = losses.refusals
    assert (refused.code, str(refused.where), MANAGED in refused.seen) == (
        "export-refused",
        "spec.devicePlugin.owner",
        True,
    )


def test_field_when_the_tool_has_no_option_then_noted() -> None:
    drained = {"nodeDrainConfig": {"pdbTimeoutDuration": "600s"}}
    text, losses = exported(gke_target(native=drained), "gcloud")
    assert "600s" not in text
    assert [note for note in losses.notes if "nodeDrainConfig.pdbTimeoutDuration (600s)" in note]


def test_pool_when_it_is_upgraded_blue_green_then_gcloud_gets_both_numbers_or_none() -> None:
    text, losses = exported(gke_target(native={"upgradeSettings": {"strategy": "BLUE_GREEN"}}), "gcloud")
    lines = "  --max-surge-upgrade 1 \\\n  --max-unavailable-upgrade 0 \\\n  --enable-blue-green-upgrade"
    assert (lines in text, losses.notes) == (True, []), text


def test_software_of_nodes_when_gcloud_reads_it_from_a_file_then_the_script_writes_it() -> None:
    target = gke_target(
        kubelet={"cpuManagerPolicy": "static", "podPidsLimit": 4096, "memoryManagerPolicy": "Static"},
        sysctls={"net.core.somaxconn": "4096"},
        hugepages={"2Mi": 512},
    )
    text, losses = exported(target, "gcloud")
    file, _, command = text.partition("\nEOF\n")
    assert json.loads(file.partition("<<'EOF'\n")[2]) == {
        "kubeletConfig": {"cpuManagerPolicy": "static", "podPidsLimit": 4096, "memoryManager": {"policy": "Static"}},
        "linuxConfig": {"sysctl": {"net.core.somaxconn": "4096"}, "hugepageConfig": {"hugepage_size2m": 512}},
    }
    assert ("--system-config-from-file a100mig-system.json\n" in command, losses.notes) == (True, [])


def test_blue_green_when_it_is_written_in_full_then_gcloud_gets_all_of_it() -> None:
    settings = {
        "standardRolloutPolicy": {"batchNodeCount": 2, "batchSoakDuration": "60s"},
        "nodePoolSoakDuration": "600s",
    }
    native = {"upgradeSettings": {"strategy": "BLUE_GREEN", "blueGreenSettings": settings}}
    text, losses = exported(gke_target(native=native), "gcloud")
    assert "--standard-rollout-policy batch-node-count=2,batch-soak-duration=60s \\\n" in text
    assert ("--node-pool-soak-duration 600s" in text, losses.notes) == (True, [])


@pytest.mark.parametrize(
    ("metadata", "option"),
    [
        ({"owner": "me"}, "--metadata owner=me"),
        ({"owner": "me", "list": "a,b"}, "--metadata '^;^owner=me;list=a,b'"),
        ({"list": "a,b;c"}, "--metadata '^|^list=a,b;c'"),
    ],
)
def test_metadata_when_a_value_has_a_comma_then_gcloud_gets_another_separator(
    metadata: dict[str, str], option: str
) -> None:
    text, _ = exported(gke_target(native={"config": {"metadata": metadata}}), "gcloud")
    assert option in text


def test_members_of_large_pools_when_written_for_terraform_then_each_has_its_argument() -> None:
    native = {
        "config": {
            "metadata": {"owner": "me"},
            "kubeletConfig": {"insecureKubeletReadonlyPortEnabled": False},
            "resourceManagerTags": {"tags": {"tagKeys/1": "tagValues/2"}},
            "containerdConfig": {"registryHosts": [{"server": "r"}]},
        },
        "networkConfig": {
            "podCidrOverprovisionConfig": {"disable": True},
            "additionalPodNetworkConfigs": [
                {"subnetwork": "s", "secondaryPodRange": "r", "maxPodsPerNode": {"maxPodsPerNode": "32"}}
            ],
        },
    }
    target = gke_target(
        native=native,
        kubelet={"podPidsLimit": 4096},
        hugepages={"2Mi": 512},
        sysctls={"net.core.somaxconn": "4096"},
        disk=Disk(200, "hyperdisk-balanced", 6000, 500),
    )
    text, losses = exported(target, "terraform")
    lines = [
        'metadata = {\n      owner = "me"',
        "pod_pids_limit = 4096",
        'insecure_kubelet_readonly_port_enabled = "FALSE"',
        "hugepage_size_2m = 512",
        '"net.core.somaxconn" = "4096"',
        "provisioned_iops = 6000",
        '"tagKeys/1" = "tagValues/2"',
        "disabled = true",
        "max_pods_per_node = 32",
    ]
    squeezed = re.sub(r" += ", " = ", text)
    assert [line for line in lines if line not in squeezed] == [], text
    assert [note for note in losses.notes if "registryHosts: the provider has no argument for it" in note]


def test_confidential_pool_when_exported_then_gcloud_and_terraform_say_so() -> None:
    target = gke_target("a3-highgpu-1g", confidential=True)
    text, _ = exported(target, "gcloud")
    assert "--enable-confidential-nodes \\\n  --confidential-node-type tdx" in text
    hcl, _ = exported(target, "terraform")
    assert 'confidential_instance_type = "TDX"' in hcl


def test_settings_when_az_reads_them_from_a_file_then_the_script_writes_it() -> None:
    text, _ = exported(make_target(kubelet={"cpuManagerPolicy": "static"}), "az")
    assert 'cat > a100mig-kubeletConfig.json <<\'EOF\'\n{\n  "cpuManagerPolicy": "static"\n}\nEOF\n' in text
    assert "  --kubelet-config a100mig-kubeletConfig.json\n" in text


NETWORK = {
    "allowedHostPorts": [
        {"portStart": 80, "portEnd": 80, "protocol": "TCP"},
        {"portStart": 8000, "portEnd": 9000, "protocol": "UDP"},
    ],
    "applicationSecurityGroups": ["/subscriptions/s/one"],
    "nodePublicIPTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
    "dranet": {"mode": "Managed"},
}


def test_network_when_exported_to_az_then_in_its_own_words() -> None:
    text, losses = exported(make_target(native={"networkProfile": NETWORK}), "az")
    for line in (
        "--allowed-host-ports 80/tcp 8000-9000/udp",
        "--asg-ids /subscriptions/s/one",
        "--node-public-ip-tags RoutingPreference=Internet",
        "--enable-managed-dranet",
    ):
        assert f"  {line}" in text
    assert losses.notes == []

    groups = {"networkProfile": {"applicationSecurityGroups": ["/subscriptions/s/one"]}}
    text, losses = exported(make_target(native=groups), "az")
    assert "--asg-ids" not in text
    assert [note for note in losses.notes if "with allowed host ports only" in note]


def test_network_when_exported_to_terraform_then_a_block_and_a_note() -> None:
    text, losses = exported(make_target(native={"networkProfile": NETWORK}), "terraform")
    assert (
        "  node_network_profile {\n"
        '    application_security_group_ids = ["/subscriptions/s/one"]\n'
        "    node_public_ip_tags = {\n"
        '      RoutingPreference = "Internet"\n'
        "    }\n"
        "    allowed_host_ports {\n"
        "      port_start = 80\n"
        "      port_end   = 80\n"
        '      protocol   = "TCP"\n'
        "    }\n"
    ) in text
    assert [note for note in losses.notes if "networkProfile.dranet.mode (Managed)" in note]


def test_message_of_the_day_when_exported_to_az_then_read_from_a_file() -> None:
    text, _ = exported(make_target(native={"messageOfTheDay": "aGk="}), "az")
    assert "printf %s aGk= | base64 -d > a100mig-messageOfTheDay.txt\n" in text
    assert "  --message-of-the-day a100mig-messageOfTheDay.txt\n" in text


def test_words_when_a_shell_would_read_more_into_them_then_quoted() -> None:
    values = ["it's", "$(rm -rf /)", "`id`", 'a"b', "a b", "", "*", "a\\b", "#x", "\u00e9", "a\nb"]
    line = shell_command(("printf", "%s|"), *((value,) for value in values))
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.split("|")[:-1] == values


SPECS = [
    (file, key, cluster["provider"])
    for file in sorted(EXAMPLES.glob("*.yaml"))
    for key, cluster in yaml.safe_load(file.read_text())["clusters"].items()
]


def exportable(pools: Sequence[Desired]) -> list[Desired]:
    """Leave out the alternatives of other pools, which no export takes."""
    return [one for one in pools if not one.target.rank]


def hcl(file: Path, key: str, tmp_path: Path) -> Path:
    """Write the Terraform of an example's pools on one cluster, with a place for what only the live cluster knows."""
    prepared = prepare(load([str(file)]), Filters(clusters=(key,)))
    cluster = prepared.clusters[key]
    pools = [ExportedPool(one) for one in exportable(prepared.desired[key])]
    made = tmp_path / f"{file.stem}-{key}.tf"
    made.write_text(export_text(cluster, "terraform", pools))
    return made


@pytest.mark.clients("terraform")
def test_hcl_when_written_then_as_terraform_formats_it(tmp_path: Path) -> None:
    for file, key, _ in SPECS:
        hcl(file, key, tmp_path)
    done = run_client(["terraform", "fmt", "-check", "-diff", "-no-color"], os.environ, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


READ_BACK = {
    "eks-capacity-block": "aws_eks_node_group",
    "aks-spot-autoscaling": "azurerm_kubernetes_cluster_node_pool",
    "gke-timesharing": "google_container_node_pool",
}
"""One of each cloud: the reader takes half a second for each."""


def test_hcl_when_read_back_then_what_was_meant(tmp_path: Path) -> None:
    hcl2 = pytest.importorskip("hcl2")
    for file, key, _ in SPECS:
        if kind := READ_BACK.get(file.stem):
            read = hcl2.loads(hcl(file, key, tmp_path).read_text())
            assert kind in {name.strip('"') for resource in read["resource"] for name in resource}


NASTY = 'a"b\\c\n${x} %{if} $ % é \x1b'


def test_text_when_hcl_would_read_more_into_it_then_escaped() -> None:
    assert literal(NASTY) == r'"a\"b\\c\n$${x} %%{if} $ % é \u001b"'
    assert literal([1, True, Expression("a.b"), "x"]) == '[1, true, a.b, "x"]'


def test_block_when_rendered_then_equals_signs_stand_below_each_other() -> None:
    body = (("a", 1), ("long", "x"), ("map", {"k": "v", "x/y": "z"}), ("none", None), block("inner", ("b", True)))
    assert render([Block("resource", ("kind", "name"), body)]) == (
        'resource "kind" "name" {\n  a    = 1\n  long = "x"\n  map = {\n    k     = "v"\n    "x/y" = "z"\n  }\n'
        "  inner {\n    b = true\n  }\n}\n"
    )


def test_live_pools_when_terraform_takes_them_over_then_each_has_an_import_block(gpukube: Gpukube) -> None:
    gpukube.made("-f", SINGLE)
    done = gpukube("pool", "export", "--cluster", ADDRESS, "--to", "terraform")
    place = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml/providers"
    assert done.code == 0, done.err
    assert "  to = azurerm_kubernetes_cluster_node_pool.a100mig\n" in done.out
    assert f'  id = "{place}/Microsoft.ContainerService/managedClusters/train/agentPools/a100mig"\n' in done.out
    assert "import {" not in gpukube("pool", "export", "-f", SINGLE, "--to", "terraform").out


def test_pool_when_it_is_spot_then_terraform_has_what_azure_gives_it_by_itself(tmp_path: Path) -> None:
    text = hcl(EXAMPLES / "aks-spot-autoscaling.yaml", "train-aks", tmp_path).read_text()
    assert "eviction_policy" in text
    assert '"kubernetes.azure.com/scalesetpriority=spot:NoSchedule"' in text
    assert '"kubernetes.azure.com/scalesetpriority"' in text


def live_hcl(target: Target, losses: Losses | None = None, **native: object) -> str:
    provider = load_provider(target.cluster.provider)
    desired = provider.desired(target, Ownership("cloud", "none", "", {}, ""), Promise({}, target.nodes))
    pool = ExportedPool(desired, make_observed(desired, native=native))
    return provider.extras.exporters["terraform"].write(target.cluster, [pool], losses or Losses())


def live_losses(target: Target, **native: object) -> list[str]:
    losses = Losses()
    live_hcl(target, losses, **native)
    return [note.partition(": ")[2] for note in losses.notes if "not written" in note]


def test_pool_when_it_is_live_on_gke_then_terraform_has_what_is_live() -> None:
    labels = {"goog-gke-accelerator-type": "nvidia-a100", "cost": "ml"}
    config = {"machineType": "a2-highgpu-1g", "oauthScopes": ["own"], "resourceLabels": labels, "diskSizeGb": 300}
    text = live_hcl(gke_target(), config=config, management={"autoUpgrade": True}, initialNodeCount=1, version="1.34")
    assert '  id = "ml-prod/us-central1/train/' in text
    assert '    oauth_scopes = ["own"]\n' in text
    assert '      cost = "ml"\n' in text
    assert "    auto_repair  = false\n    auto_upgrade = true\n" in text, "what the API leaves out is false"
    assert not [word for word in ("goog-gke", "  version ", "initial_node_count =") if word in text]


def test_pool_when_it_is_live_on_aks_then_terraform_has_one_word_on_upgrades() -> None:
    upgrades = {"maxSurge": "10%", "maxUnavailable": "0"}
    properties = {"vmSize": "Standard_ND96asr_v4", "count": 1, "enableFIPS": False, "upgradeSettings": upgrades}
    text = live_hcl(make_target(), properties={**properties, "orchestratorVersion": "1.34.2"})
    assert '  upgrade_settings {\n    max_surge = "10%"\n  }\n' in text
    assert not [word for word in ("fips", "orchestrator_version", "max_unavailable") if word in text]


def test_pool_when_it_is_live_on_aks_with_profiles_then_terraform_has_or_notes_each() -> None:
    ports = [{"portStart": 80, "portEnd": 90, "protocol": "TCP"}]
    network = {"allowedHostPorts": ports, "nodePublicIPTags": None, "dranet": None}
    properties = {"vmSize": "Standard_ND96asr_v4", "networkProfile": network, "messageOfTheDay": "aGk="}
    kubelet = {"kubeletConfig": {"podMaxPids": 4096}, "localDNSProfile": {"mode": "Required"}}
    losses = Losses()
    text = live_hcl(make_target(), losses, properties=properties | kubelet)
    assert "  node_network_profile {\n    allowed_host_ports {\n" in text
    assert "  kubelet_config {\n    pod_max_pid = 4096\n  }\n" in text
    (unwritten,) = (note for note in losses.notes if "not written" in note)
    assert "localDNSProfile, messageOfTheDay" in unwritten
    assert not [note for note in losses.notes if "dranet" in note]


REPAIR = {
    "enabled": True,
    "maxParallelNodesRepairedCount": 2,
    "nodeRepairConfigOverrides": [
        {
            "nodeMonitoringCondition": "AcceleratedHardwareReady",
            "nodeUnhealthyReason": "NvidiaXID64Error",
            "minRepairWaitTimeMins": 10,
            "repairAction": "Reboot",
        }
    ],
}


def test_group_when_the_provider_has_arguments_by_now_then_written_with_the_release_that_has_them() -> None:
    text, losses = exported(eks_target(native={"nodeRepairConfig": REPAIR}), "terraform")
    assert '    update_strategy = "MINIMAL"\n' in text
    assert "    max_parallel_nodes_repaired_count = 2\n    node_repair_config_overrides {\n" in text
    assert '      node_monitoring_condition = "AcceleratedHardwareReady"\n' in text
    assert [note.partition(": ")[2] for note in losses.notes[1:]] == [
        "update_config.update_strategy needs hashicorp/aws 6.26.0 or newer",
        "node_repair_config with more than enabled needs hashicorp/aws 6.20.0 or newer",
    ]


NO_OPTION = {
    "az": {"kubeletDiskType", "securityProfile.sshAccess"},
    "gcloud": {
        "config.consolidationDelay",
        "config.containerdConfig.privateRegistryAccessConfig.certificateAuthorityDomainConfig",
        "config.containerdConfig.privateRegistryAccessConfig.enabled",
        "config.containerdConfig.registryHosts",
        "config.containerdConfig.writableCgroups.enabled",
        "config.gpuDirectConfig.gpuDirectStrategy",
        "config.localSsdEncryptionMode",
        "config.soleTenantConfig.minNodeCpus",
        "config.soleTenantConfig.nodeAffinities",
        "config.taintConfig.architectureTaintBehavior",
        "maintenancePolicy.exclusionUntilEndOfSupport.enabled",
        "networkConfig.podCidrOverprovisionConfig.disable",
        "networkConfig.subnetwork",
        "nodeDrainConfig.graceTerminationDuration",
        "nodeDrainConfig.pdbTimeoutDuration",
        "nodeDrainConfig.respectPdbDuringNodePoolDeletion",
        "upgradeSettings.blueGreenSettings.autoscaledRolloutPolicy.waitForDrainDuration",
    },
}
"""What the tools of 2025 have no option for: it is noted."""


def test_native_fields_when_exported_then_each_has_an_option_or_is_known_to_have_none() -> None:
    whole = {*az._FILES, az._MESSAGE, "networkProfile"}
    of_aks = {path for path, _ in native_leaves() if path.partition(".")[0] not in whole}
    assert of_aks - {*az._VALUES, *az._SWITCHES} == NO_OPTION["az"]
    tables = (gcloud._VALUES, gcloud._SWITCHES, gcloud._COUNTED, gcloud._LISTS, gcloud._TOGETHER, gcloud._SYSTEM)
    without = GKE_NATIVE.keys() - {path for table in tables for path in table}
    assert {path for path in without if not NOT_IN_FILE.match(path)} == NO_OPTION["gcloud"]


NOT_IN_FILE = re.compile(
    r"config\.(?:(kubeletConfig)\.(?:crashLoop|eviction|maxParallel|shutdown)"
    r"|(linuxNodeConfig)\.(?:accurateTime|customNode|diskIo|nodeKernel|nodeVfio|swap|transparent))"
)
"""Settings that gcloud's file for the system configuration does not have."""


def members(*names: str) -> dict[str, object]:
    """Make a schema of an object that has no other members."""
    return {"type": "object", "properties": {name: {} for name in names}, "additionalProperties": False}


OBJECT = {"type": "object", "required": ["apiVersion", "kind", "metadata"]}
NODE_GROUP = members(
    *[
        "name",
        "instanceType",
        "amiFamily",
        "releaseVersion",
        "minSize",
        "maxSize",
        "desiredCapacity",
        "subnets",
        "iam",
        "volumeSize",
        "volumeType",
    ],
    *[
        "disableIMDSv1",
        "spot",
        "capacityReservation",
        "instanceMarketOptions",
        "labels",
        "tags",
        "taints",
        "updateConfig",
    ],
    *["nodeRepairConfig", "maxPodsPerNode", "bottlerocket"],
    *["instanceTypes", "volumeIOPS", "volumeThroughput", "volumeEncrypted", "volumeKmsKeyID"],
    *["efaEnabled", "privateNetworking", "placement", "securityGroups", "ssh"],
    *["ebsOptimized", "enableDetailedMonitoring"],
)
SPECS_OF_KINDS = {
    "ClusterConfig": {**OBJECT, "properties": {"managedNodeGroups": {"type": "array", "items": NODE_GROUP}}},
    "NodePool": {**OBJECT, "properties": {"spec": members("template", "disruption", "limits", "replicas")}},
    "EC2NodeClass": {
        **OBJECT,
        "properties": {
            "spec": members(
                "role",
                "amiSelectorTerms",
                "subnetSelectorTerms",
                "securityGroupSelectorTerms",
                "capacityReservationSelectorTerms",
                "kubelet",
                "userData",
                "blockDeviceMappings",
                "metadataOptions",
                "tags",
            )
            | {"required": ["role", "amiSelectorTerms", "subnetSelectorTerms", "securityGroupSelectorTerms"]}
        },
    },
}
"""What the schemas of eksctl and Karpenter have of it, as far as it is written here."""
EKS_SPECS = [(file, key) for file, key, provider in SPECS if provider == "eks"]
ROLE = "arn:aws:iam::111122223333:role/nodes"


def documents(file: Path, key: str, target: str) -> list[dict[str, Any]]:
    prepared = prepare(load([str(file)]), Filters(clusters=(key,)))
    desired = exportable(prepared.desired[key])
    pools = [ExportedPool(with_place(one, ROLE, ["subnet-0123456789abcdef0"])) for one in desired]
    return list(yaml.safe_load_all(export_text(prepared.clusters[key], target, pools)))


@pytest.mark.parametrize("target", ["eksctl", "karpenter"])
def test_manifests_when_written_then_only_known_members(target: str) -> None:
    seen = []
    for file, key in EKS_SPECS:
        try:
            found = documents(file, key, target)
        except SpecError as error:
            seen.append((file.stem, [one.code for one in error.diagnostics]))
            continue
        for document in found:
            Draft202012Validator(SPECS_OF_KINDS[document["kind"]]).validate(document)
    assert seen == ([("eks-mig-layout", ["export-refused"])] if target == "karpenter" else [])


def test_karpenter_when_a_pool_is_autoscaled_then_its_most_gpus_are_the_limit_and_else_replicas() -> None:
    pool, node_class = documents(EXAMPLES / "eks-timeslicing.yaml", "train-eks", "karpenter")
    assert (pool["spec"]["replicas"], node_class["spec"]["role"]) == (2, "nodes")
    labels = pool["spec"]["template"]["metadata"]["labels"]
    assert (labels["gpukube.io/advertiser"], labels.keys() & {"gpukube.io/owner", "gpukube.io/pool"}) == (
        "chart",
        set(),
    )


def test_karpenter_when_pods_claim_gpus_then_only_pools_of_a_fixed_size(tmp_path: Path) -> None:
    spec = yaml.safe_load((EXAMPLES / "eks-dra.yaml").read_text())
    fixed = documents(EXAMPLES / "eks-dra.yaml", "claims-eks", "karpenter")
    assert [one["spec"]["replicas"] for one in fixed if one["kind"] == "NodePool"] == [2, 1]
    spec["pools"][0]["nodes"] = {"autoscaling": {"min": 1, "max": 4}}
    scaled = tmp_path / "scaled.yaml"
    scaled.write_text(yaml.safe_dump(spec))
    with pytest.raises(SpecError) as refused:
        documents(scaled, "claims-eks", "karpenter")
    assert [(one.code, "1.15" in one.seen) for one in refused.value.diagnostics] == [("export-refused", True)]


def test_eksctl_when_the_image_is_bottlerocket_then_its_settings_are_kept() -> None:
    file = EXAMPLES / "eks-bottlerocket-mig.yaml"
    (key,) = yaml.safe_load(file.read_text())["clusters"]
    (config,) = documents(file, key, "eksctl")
    (group, *_) = config["managedNodeGroups"]
    settings = group["bottlerocket"]["settings"]["kubelet-device-plugins"]["nvidia"]
    assert (group["amiFamily"], settings["device-partitioning-strategy"]) == ("Bottlerocket", "mig")


def test_cluster_when_it_has_no_gpu_pools_then_nothing_is_written(gpukube: Gpukube) -> None:
    daemon.add_cluster(gpukube.info, CLUSTER.identity["subscription"], "ml", "train")
    done = gpukube("pool", "export", "--cluster", ADDRESS, "--to", "terraform")
    assert (done.code, done.out, "has no GPU pools" in done.err) == (0, "", True)
