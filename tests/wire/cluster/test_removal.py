"""A release that cannot be taken away says why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.names import GPU_OPERATOR, NAMESPACE
from gpukube.cluster.release.migration import OutgoingRelease
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.removal import uninstall_release
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.errors import HelmError, HelmTimeout
from gpukube_sandbox.kube.store.kinds import CORE
from tests.unit.cluster.builders import operated

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager
    from tests.wire.cluster.conftest import Live

JOB = "gpu-operator-cleanup-gpucluster"


class Overdue:
    """A Helm whose wait for the hook has run out, in place of a minute of waiting."""

    def uninstall(self, _kubeconfig: Path, _name: str, _namespace: str, *, keep_history: bool = False) -> None:
        raise HelmTimeout("Helm timed out waiting", where="helm uninstall", fix=f"{keep_history}")


def leave_hook(live: Live) -> None:
    """Put the hook there as Helm does where no node takes its pod."""
    metadata = {
        "name": JOB,
        "namespace": NAMESPACE,
        "labels": {"app.kubernetes.io/instance": GPU_OPERATOR.name},
        "annotations": {"helm.sh/hook": "pre-delete"},
    }
    pod = {"restartPolicy": "OnFailure", "containers": [{"name": "x", "image": "x"}]}

    async def put() -> None:
        live.cluster.store.create(CORE["jobs"], {"metadata": metadata, "spec": {"template": {"spec": pod}}})

    live.run(put())


def test_uninstall_when_the_operators_clean_up_job_does_not_end_then_it_is_named_and_the_release_stands(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    keeper.install_or_upgrade(plan_release([operated()], Snapshot()), 0)
    leave_hook(live)
    engine: Engine = Overdue()  # type: ignore[assignment]  # the one verb that is asked for
    outgoing = OutgoingRelease(GPU_OPERATOR.name, NAMESPACE, GPU_OPERATOR.title, GPU_OPERATOR.plugin, GPU_OPERATOR)
    with pytest.raises(HelmError) as caught:
        uninstall_release(engine, live.access(), kube, outgoing)
    assert JOB in str(caught.value)
    assert f"job-name={JOB}" in caught.value.render()
    assert look(kube).release_of(GPU_OPERATOR) is not None
