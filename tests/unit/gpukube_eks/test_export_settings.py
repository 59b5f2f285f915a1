"""Settings of the nodes in exports: written where the tool has a place for them, else named as missing."""

from __future__ import annotations

import yaml

from gpukube.core.exporting import ExportedPool, Losses
from gpukube_eks.export.eksctl import write_config
from gpukube_eks.export.karpenter import write_manifests
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

STATIC = {"cpuManagerPolicy": "static"}


def test_karpenter_when_the_kubelet_has_settings_gets_the_user_data() -> None:
    pools = [ExportedPool(desired_of(eks_target(max_pods=60, kubelet=STATIC)))]

    written = [one for one in yaml.safe_load_all(write_manifests(CLUSTER, pools, Losses())) if one]

    (data,) = [one["spec"]["userData"] for one in written if one["kind"] == "EC2NodeClass"]
    assert 'cpuManagerPolicy: "static"' in data
    plain = write_manifests(CLUSTER, [ExportedPool(desired_of(eks_target(max_pods=60)))], Losses())
    assert "userData" not in plain


def test_eksctl_when_the_kubelet_has_settings_says_where_they_belong() -> None:
    losses = Losses()

    write_config(CLUSTER, [ExportedPool(desired_of(eks_target(max_pods=60, kubelet=STATIC)))], losses)

    assert any("kubelet.cpuManagerPolicy: write them as NodeConfig" in note for note in losses.notes)


def test_eksctl_when_bottlerocket_has_settings_writes_them() -> None:
    target = eks_target(image="bottlerocket", max_pods=60, kubelet=STATIC, sysctls={"net.core.somaxconn": "1"})

    written = yaml.safe_load(write_config(CLUSTER, [ExportedPool(desired_of(target))], Losses()))

    (group,) = written["managedNodeGroups"]
    assert group["maxPodsPerNode"] == 60
    assert group["bottlerocket"]["settings"] == {
        "kubernetes": {"cpu-manager-policy": "static"},
        "kernel": {"sysctl": {"net.core.somaxconn": "1"}},
    }
