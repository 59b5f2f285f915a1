"""Rules speak of the user's file: every finding of a broken spec at its line and column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.resolve import resolve_targets
from gpukube.errors import render_diagnostics
from gpukube.spec.loading.load import load_specs
from gpukube_aks import AksProvider

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
pools:
  - name: aks-mignode
    clusters: [train]
    instanceType: Standard_NC24ads_A100_v4
    nodes: {autoscaling: {min: 0, max: 5}}
    zones: [eastus-1]
    disk: {sizeGiB: 20}
    sharing: {mig: {profile: 1g.20gb, strategy: mixed}}
    labels:
      kubernetes.azure.com/mode: user
    tags: {SkipGPUDriverInstall: "true"}
    taints:
      - {key: sku, effect: NoSchedule}
    driver: {owner: none}
    devicePlugin: {owner: none}
    aks:
      vmSize: Standard_NC4as_T4_v3
      upgradeSettings: {maxsurge: "1"}
"""

EXPECTED = """\
pools.yaml:7:11: error[GPK501 aks-name]: "aks-mignode" is not an AKS pool name
pools.yaml:9:19: hint[GPK559 aks-series-frozen]: Azure adds no capacity for the series of \
Standard_NC24ads_A100_v4: machines may be hard to get
pools.yaml:10:32: error[GPK510 aks-mixed-from-zero]: nodes.autoscaling.min is 0 with strategy mixed: the pool \
would never scale up from zero
pools.yaml:11:13: error[GPK504 aks-zone]: "eastus-1" is not a zone of Azure
pools.yaml:12:21: error[GPK506 aks-disk-size]: disk.sizeGiB is 20, less than AKS allows
pools.yaml:13:30: error[GPK509 aks-mig-profile]: AKS does not support the MIG profile "1g.20gb" on A100-80GB
pools.yaml:15:34: error[GPK517 aks-label]: AKS refuses the label "kubernetes.azure.com/mode"
pools.yaml:16:34: error[GPK521 aks-tag]: the tag "SkipGPUDriverInstall" changes the GPU driver independently of the spec
pools.yaml:18:9: error[GPK519 aks-taint-value]: the taint "sku" has no value
pools.yaml:19:21: error[GPK555 aks-driver-mig]: driver.owner is none, but AKS needs its own driver for MIG
pools.yaml:22:15: error[GPK525 aks-native-managed]: aks.vmSize is set by gpukube itself
pools.yaml:23:35: error[GPK527 aks-native-unknown]: aks.upgradeSettings has no property "maxsurge"
"""


def test_findings_when_a_spec_is_broken_everywhere_are_all_told_at_their_places(tmp_path: Path) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC)
    (spec,) = load_specs([str(path)], environ={})
    (target,), problems = resolve_targets(spec)
    text = render_diagnostics(AksProvider().check(target)).replace(str(tmp_path) + "/", "")

    assert problems == ()
    assert "".join(f"{line}\n" for line in text.splitlines() if line.startswith("pools.yaml")) == EXPECTED
