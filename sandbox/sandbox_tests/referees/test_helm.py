"""The `helm` command, 3 or 4: charts of its own and of the sandbox's repository, and what the sandbox makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from sandbox_tests.referees.asking import Referee, Row

pytestmark = pytest.mark.clients("helm")

LISTS: dict[str, list[Row]] = {
    "NVIDIA's plugin": [
        ("helm repo add nvdp $charts", '"nvdp" has been added to your repositories'),
        ("helm search repo nvdp", "nvdp/gpu-operator v26.7.0 ... nvdp/nvidia-device-plugin 0.20.0"),
        ("helm show chart nvdp/nvidia-device-plugin", "name: nvidia-device-plugin"),
        ("helm install own nvdp/nvidia-device-plugin --version 0.19.3 $wait --create-namespace", "STATUS: deployed"),
        ("helm list -A", "own gpu 1 ... deployed nvidia-device-plugin-0.19.3 0.19.3"),
        ("helm status own -n gpu", "STATUS: deployed REVISION: 1"),
        ("helm upgrade own nvdp/nvidia-device-plugin $wait --set gfd.enabled=true", "has been upgraded."),
        ("helm get values own -n gpu", "gfd: enabled: true"),
        ("helm get manifest own -n gpu", "kind: DaemonSet ... name: own-nvidia-device-plugin"),
        ("helm history own -n gpu", "1 ... superseded ... Install complete 2 ... deployed ... Upgrade complete"),
        ("helm rollback own 1 $wait", "Rollback was a success!"),
        ("helm uninstall own -n gpu", 'release "own" uninstalled'),
        ("helm list -A -q", ""),
    ],
    "a chart of one's own": [
        ("helm create mine", "Creating mine"),
        ("helm install mine ./mine --wait --timeout 60s", "STATUS: deployed REVISION: 1"),
        ("helm test mine --timeout 60s", "TEST SUITE: mine-test-connection ... Phase: Succeeded"),
        ("helm upgrade mine ./mine --set replicaCount=2 --wait --timeout 60s", "REVISION: 2"),
        ("helm rollback mine 1 --wait", "Rollback was a success!"),
        ("helm history mine", "3 ... deployed mine-0.1.0 1.16.0 Rollback to 1"),
        ("helm install mine ./mine", "cannot re-use a name that is still in use", 1),
        ("helm uninstall mine", 'release "mine" uninstalled'),
    ],
}


@pytest.mark.parametrize("name", LISTS)
def test_helm_when_it_installs_and_removes_then_as_on_a_real_cluster(referee: Referee, name: str) -> None:
    referee.names |= {"charts": referee.info.charts_url, "wait": "-n gpu --wait --timeout 60s"}
    referee.asks(LISTS[name])
