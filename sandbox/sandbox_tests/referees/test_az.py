"""The `az` command, over https and without a login: what it asks of ARM, and what the sandbox answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import GROUP, NAME

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Json
    from sandbox_tests.referees.asking import Referee, Row

pytestmark = pytest.mark.clients("az")

_NOT_EMULATED = "(NotEmulated) The gpukube sandbox does not emulate"

LISTS: dict[str, list[Row]] = {
    "what is there": [
        ("az account show --query state", "Enabled"),
        ("az group show -n ml --query location", "eastus"),
        ("az aks list --query [].name", "train"),
        ("az aks show -g ml -n train --query [provisioningState,kubernetesVersion]", "Succeeded 1.34.2"),
        ("az aks show -g ml -n nobody", "(ResourceNotFound) The Resource ... managedClusters/nobody' under", 3),
        ("az aks nodepool list $cluster --query [].name", "nodepool1"),
        ("az aks nodepool show $cluster -n nodepool1 --query [mode,provisioningState]", "System Succeeded"),
        ("az aks get-credentials -g ml -n train -f own", 'Merged "train" as current context in own'),
        ("az vm list-skus -l eastus --size Standard_NC4as --query [].name", "Standard_NC4as_T4_v3"),
        ("az vm list-skus -l eastus --size Standard_NC4as -o table", "Zones Restrictions ... 1,2,3 None"),
        ("az vm list-usage -l eastus --query [0].[name.value,limit]", "cores 100000"),
        ("az vm list-usage -l moonbase", "(NoRegisteredProviderFound) No registered resource provider found", 1),
        ("az aks get-versions -l eastus --query values[].version", "1.34"),
        ("az aks get-versions -l moonbase", "(NoRegisteredProviderFound) No registered resource provider found", 1),
        ("az aks get-upgrades -g ml -n train --query controlPlaneProfile.kubernetesVersion", "1.34.2"),
        ("az account list-locations --query [0].name", "australiacentral"),
    ],
    "the life of a pool": [
        (
            (
                "az aks nodepool add $pool --node-vm-size Standard_ND96asr_v4 --node-count 1"
                " --gpu-instance-profile MIG1g --query [provisioningState,gpuInstanceProfile]"
            ),
            "Succeeded MIG1g",
        ),
        ("az aks nodepool update $pool --labels team=vision --query nodeLabels.team", "vision"),
        ("az aks nodepool update $pool --node-taints sku=gpu:NoSchedule --query nodeTaints", "sku=gpu:NoSchedule"),
        (
            (
                "az aks nodepool update $pool --enable-cluster-autoscaler --min-count 0 --max-count 3"
                " --query [enableAutoScaling,maxCount]"
            ),
            "true 3",
        ),
        ("az aks nodepool update $pool --disable-cluster-autoscaler --query enableAutoScaling", "false"),
        ("az aks nodepool scale $pool -c 2 --query count", "2"),
        ("az aks nodepool stop $pool --query powerState.code", "Stopped"),
        ("az aks nodepool start $pool --query powerState.code", "Running"),
        ("az aks nodepool get-upgrades $cluster --nodepool-name mig --query kubernetesVersion", "1.34.2"),
        (
            "az aks nodepool upgrade $pool -k 1.20.0 --yes",
            "(NodePoolMcVersionIncompatible) Node pool version 1.20.0",
            1,
        ),
        ("az aks nodepool operation-abort $pool", "(OperationNotAllowed) There is no operation in progress", 1),
        ("az aks nodepool delete $pool", ""),
        ("az aks nodepool show $pool", "(NotFound) Could not find the agentpool: mig in managed cluster train", 3),
    ],
    "what is not emulated": [
        ("az aks maintenanceconfiguration list $cluster", _NOT_EMULATED, 1),
        ("az aks nodepool delete-machines $cluster -n nodepool1 --machine-names a", _NOT_EMULATED, 1),
        ("az aks machine list $cluster --nodepool-name nodepool1", _NOT_EMULATED, 1),
        ("az disk list -g ml", _NOT_EMULATED, 1),
    ],
}


@pytest.fixture
def az(referee: Referee) -> Referee:
    cluster = f"-g {GROUP} --cluster-name {NAME}"
    referee.names |= {"cluster": cluster, "pool": f"{cluster} -n mig"}
    referee.env = {**referee.env, "AZURE_CORE_OUTPUT": "tsv"}
    return referee


@pytest.mark.parametrize("name", LISTS)
def test_az_when_it_asks_then_answered_as_by_azure(az: Referee, name: str) -> None:
    az.asks(LISTS[name])


def test_az_when_the_service_fails_later_then_it_prints_code_and_message(az: Referee) -> None:
    daemon.add_fault(az.info, "operation", code="SkuNotAvailable")
    add = "az aks nodepool add $cluster --node-vm-size Standard_NC4as_T4_v3"
    unfit = "is not supported by VM size 'Standard_NC4as_T4_v3'"
    az.asks([(f"{add} -n t4", "(SkuNotAvailable)", 1), (f"{add} -n mig --gpu-instance-profile MIG1g", unfit, 1)])


def test_az_when_it_adds_a_pool_then_the_request_that_our_own_are_compared_with(az: Referee) -> None:
    az.asks([("az aks nodepool add $pool --node-vm-size Standard_ND96asr_v4 --node-count 1 --query name", "mig")])
    assert _sent(az) == [
        {
            "vmSize": "Standard_ND96asr_v4",
            "osType": "Linux",
            "enableNodePublicIP": False,
            "count": 1,
            "enableAutoScaling": False,
            "scaleSetPriority": "Regular",
            "nodeTaints": [],
            "upgradeSettings": {"undrainableNodeBehavior": "Schedule"},
            "type": "VirtualMachineScaleSets",
            "enableEncryptionAtHost": False,
            "enableUltraSSD": False,
            "enableFIPS": False,
            "mode": "User",
            "scaleDownMode": "Delete",
        }
    ]


def _sent(az: Referee) -> list[Json]:
    """Return the properties of every PUT, oldest first."""
    bodies = [entry["body"] for entry in daemon.requests_since(az.info) if entry["method"] == "PUT"]
    return [dict(body["properties"]) for body in bodies if isinstance(body, dict)]
