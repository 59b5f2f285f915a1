"""Helm's contract: the same for the command and for the embedded library, against an emulated cluster."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lightkube import Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Secret
from starlette.applications import Starlette
from starlette.routing import Mount

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.helm.cli import HelmCli
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.helm.engine import HelmJob
from gpukube.cluster.kube.releases import release_history, secret_name
from gpukube.cluster.names import DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.errors import AccessError, ChartNotFound, ClusterError, Conflict, HelmError
from gpukube_sandbox import charts as chart_sources
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape
from gpukube_sandbox.kube.nodes.shapes import Taint as SandboxTaint
from gpukube_sandbox.tls import make_tls
from sandbox_tests.serving import serving
from tests.unit.cluster.builders import GPU_TAINT, PLUGIN_NAME, RELEASE_NAME, SINGLE, SLICED, VISION_TAINT, desire
from tests.wire.cluster.conftest import settled_proof

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import Receive, Scope, Send

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.values import Desired
    from tests.wire.cluster.conftest import Live

CUT = desire(sharing=SINGLE, taints=(GPU_TAINT, VISION_TAINT))
SHARED = desire(sharing=SLICED, pool="shared")
FRESH = plan_release([CUT], Snapshot())


def newest_of(kube: LightKube) -> Release:
    found = look(kube).release_of(DEVICE_PLUGIN)
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what other runs on this machine leave out of the count."""
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))


def left_behind() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("gpukube-[hk]*")}


def test_dry_run_when_nothing_is_there_then_digest_and_nothing_is_written(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    assert keeper.dry_run(FRESH).digest.startswith("sha256:")
    assert kube.namespace_labels(NAMESPACE) is None
    assert look(kube).release_of(DEVICE_PLUGIN) is None


def test_install_when_nothing_is_there_then_the_release_is_as_planned(keeper: ReleaseManager, kube: LightKube) -> None:
    answer = keeper.install_or_upgrade(FRESH, 0)
    seen = look(kube)
    assert (answer.revision, answer.status) == (1, "deployed")
    live = seen.release_of(DEVICE_PLUGIN)
    assert live is not None
    assert (live.values, live.chart_version) == (FRESH.values, "0.20.0")
    assert (kube.namespace_labels(NAMESPACE) or {})["pod-security.kubernetes.io/enforce"] == "privileged"
    assert sorted(seen.config_map or {}) == list(FRESH.keys)
    assert PLUGIN_NAME in [item.name for item in seen.daemonsets]
    assert plan_release([CUT], seen).action == "none"


def test_upgrade_when_a_second_spec_joins_then_both_are_served(keeper: ReleaseManager, kube: LightKube) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    second = plan_release([SHARED], look(kube))
    assert (second.action, second.revision) == ("upgrade", 1)
    keeper.dry_run(second)
    assert keeper.install_or_upgrade(second, 1).revision == 2
    seen = look(kube)
    assert {CUT.ownership.config_key, SHARED.ownership.config_key} <= set(seen.config_map or {})
    assert plan_release([CUT], seen).action == "none"


def test_upgrade_when_the_daemonset_was_deleted_then_it_comes_back(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    delete(live, "daemonsets", PLUGIN_NAME)
    plan = plan_release([CUT], look(kube))
    assert plan.reason == f"DaemonSet {PLUGIN_NAME} is missing"
    keeper.install_or_upgrade(plan, plan.revision)
    assert plan_release([CUT], look(kube)).action == "none"


def delete(live: Live, plural: str, name: str) -> None:
    async def remove() -> None:
        found = await live.cluster.api.get(plural, name, NAMESPACE)
        assert found is not None
        await live.cluster.api.delete(plural, found)

    live.run(remove())


def test_upgrade_when_the_revision_moved_then_conflict_and_nothing_changes(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    with pytest.raises(Conflict, match="revision 1, but the plan was made from 0"):
        keeper.install_or_upgrade(plan_release([SHARED], Snapshot()), 0)
    assert newest_of(kube).revision == 1


def test_apply_when_another_run_was_faster_then_merged_and_both_are_served(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    stale = plan_release([SHARED], look(kube))
    keeper.install_or_upgrade(FRESH, 0)

    def replan(missed: Sequence[Release]) -> ReleasePlan:
        return plan_release([SHARED], look(kube), missed=missed)

    answer = apply_release(keeper, kube, stale, replan)
    assert answer is not None
    assert answer.revision == 2
    assert {CUT.ownership.config_key, SHARED.ownership.config_key} <= set(look(kube).config_map or {})


_LONG_AGO = "2020-01-01T00:00:00.000000000Z"


def put_pending(live: Live, release: Release, revision: int, status: str, since: str = _LONG_AGO) -> None:
    """Leave the record that a Helm run leaves which is killed in the middle."""
    record = {
        "name": release.name,
        "namespace": release.namespace,
        "version": revision,
        "info": {"status": status, "first_deployed": since, "last_deployed": since},
        "chart": {"metadata": {"name": release.chart, "version": release.chart_version, "apiVersion": "v2"}},
        "config": dict(release.values),
        "manifest": release.manifest,
    }
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
    labels = {"owner": "helm", "name": release.name, "status": status, "version": str(revision)}
    meta = ObjectMeta(name=secret_name(release.name, revision), namespace=NAMESPACE, labels=labels)
    config = KubeConfig.from_dict(json.loads(live.access().kubeconfig))
    with Client(config, trust_env=False) as client:
        client.create(Secret(metadata=meta, type="helm.sh/release.v1", data={"release": packed}))


@pytest.mark.turns(2)
@pytest.mark.parametrize("status", ["pending-upgrade", "pending-rollback"])
def test_upgrade_when_a_former_run_was_cut_off_then_repaired(
    keeper: ReleaseManager, kube: LightKube, live: Live, status: str
) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    put_pending(live, newest_of(kube), 2, status)
    plan = plan_release([CUT, SHARED], look(kube))
    assert (plan.pending, plan.revision) == (status, 2)
    keeper.dry_run(plan)
    keeper.install_or_upgrade(plan, 2)
    seen = look(kube)
    assert [item.status for item in seen.history] == ["superseded", "deployed"]
    assert plan_release([CUT, SHARED], seen).action == "none"


def test_install_when_the_first_one_was_cut_off_then_repaired(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    first = newest_of(kube)
    kube.delete_secret(NAMESPACE, secret_name(RELEASE_NAME, 1))
    put_pending(live, first, 1, "pending-install")
    plan = plan_release([CUT], look(kube))
    keeper.dry_run(plan)
    assert keeper.install_or_upgrade(plan, plan.revision).revision == 1
    assert newest_of(kube).status == "deployed"


def test_upgrade_when_the_release_moves_while_it_waits_for_another_run_then_conflict_and_nothing_changes(
    keep: Callable[..., ReleaseManager], kube: LightKube, live: Live
) -> None:
    def end_of_the_other(_seconds: float) -> None:
        """Close the record that is waited for, and change the release once more."""
        kube.delete_secret(NAMESPACE, secret_name(RELEASE_NAME, 2))
        for _ in range(2):
            other.install_or_upgrade(FRESH, newest_of(kube).revision)

    other = keep()
    other.install_or_upgrade(FRESH, 0)
    put_pending(live, newest_of(kube), 2, "pending-upgrade", since=datetime.now(UTC).isoformat())
    plan = plan_release([CUT, SHARED], look(kube))
    with pytest.raises(Conflict, match="revision 3, but the plan was made from 2"):
        keep(pause=end_of_the_other).install_or_upgrade(plan, 2)
    assert (newest_of(kube).revision, newest_of(kube).values) == (3, FRESH.values)


def test_uninstall_when_there_then_gone_and_again_is_fine(keeper: ReleaseManager, kube: LightKube, live: Live) -> None:
    live.run(live.cluster.add_node(NodeShape(name="cpu-1", boot_s=1.0)))  # NFD's clean-up job needs a node
    keeper.install_or_upgrade(FRESH, 0)
    assert keeper.uninstall(DEVICE_PLUGIN)
    seen = look(kube)
    assert (seen.history, seen.config_map, seen.daemonsets) == ((), None, ())
    assert not keeper.uninstall(DEVICE_PLUGIN)


# What goes wrong


def test_dry_run_when_the_token_is_wrong_then_access_error(keep: Callable[..., ReleaseManager], live: Live) -> None:
    with pytest.raises(AccessError):
        keep(live.access(token="wrong")).dry_run(FRESH)


def test_dry_run_when_nobody_listens_then_cluster_error_and_no_deadline_passes(
    keep: Callable[..., ReleaseManager], live: Live
) -> None:
    with pytest.raises(ClusterError):
        keep(live.access(url="https://127.0.0.1:9")).dry_run(FRESH)


def test_install_when_something_is_forbidden_then_access_error(keeper: ReleaseManager, live: Live) -> None:
    live.cluster.denied.add(("create", "clusterroles.rbac.authorization.k8s.io"))
    live.cluster.denied.add(("patch", "clusterroles.rbac.authorization.k8s.io"))
    with pytest.raises(AccessError) as caught:
        keeper.install_or_upgrade(FRESH, 0)
    assert "clusterroles" in caught.value.render()


CHARTS: dict[str, Callable[[ChartSource], ChartSource]] = {
    "no such repository": lambda _charts: ChartSource("http://127.0.0.1:9/charts", "0.20.0"),
    "beyond loopback": lambda _charts: ChartSource("http://192.0.2.1/charts", "0.20.0"),
    "no such registry": lambda _charts: ChartSource("oci://127.0.0.1:9/charts/nvidia-device-plugin", "0.20.0"),
    "no such path": lambda _charts: ChartSource("/nowhere/chart", ""),
}


@pytest.mark.parametrize("case", CHARTS)
def test_dry_run_when_the_chart_cannot_be_had_then_said_so(
    keep: Callable[..., ReleaseManager], charts: ChartSource, case: str
) -> None:
    with pytest.raises(HelmError) as caught:
        keep(source=CHARTS[case](charts)).dry_run(FRESH)
    assert caught.value.diagnostics[0].code == "chart-not-found"
    assert caught.value.diagnostics[0].fix


def test_dry_run_when_the_version_does_not_exist_then_said_so(keeper: ReleaseManager) -> None:
    with pytest.raises(ChartNotFound) as caught:
        keeper.dry_run(replace(FRESH, version="9.9.9"))
    assert caught.value.diagnostics[0].code == "no-chart-version"


def test_dry_run_when_the_chart_refuses_a_value_then_said_so(keeper: ReleaseManager) -> None:
    nested = {**FRESH.values, "config": {"map": {"c-1": {"version": "v1"}}, "default": "c-1"}}
    with pytest.raises(HelmError) as caught:
        keeper.dry_run(replace(FRESH, values=nested))
    assert caught.value.diagnostics[0].code in ("chart-values", "chart-rendered")


def test_dry_run_when_the_chart_is_a_directory_then_used_as_it_is(keep: Callable[..., ReleaseManager]) -> None:
    directory = Path(str(chart_sources.__file__)).parent / "nvidia-device-plugin"
    assert keep(source=ChartSource(str(directory), "")).dry_run(FRESH).digest == ""


def test_install_when_the_cluster_never_answers_then_stopped_at_the_deadline(
    engine: Engine, keeper: ReleaseManager, live: Live, environ: dict[str, str], tmp_path: Path
) -> None:
    impatient = HelmSdk(environ, deadline_s=3) if isinstance(engine, HelmSdk) else _impatient(engine, environ)
    chart = keeper._chart(FRESH)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch(mode=0o600)
    tls = make_tls(tmp_path)
    with serving(Starlette(routes=[Mount("/", _never)]), tls) as (url, _loop):
        kubeconfig.write_text(live.cluster.kubeconfig(url, tls.ca.read_text()))
        job = HelmJob(kubeconfig, RELEASE_NAME, NAMESPACE, chart, FRESH.values, installed=False, dry_run=False)
        with pytest.raises(HelmError) as caught:
            impatient.upgrade(job)
    assert caught.value.diagnostics[0].code == "helm-timeout"
    assert left_behind() == set()


async def _never(scope: Scope, receive: Receive, send: Send) -> None:
    """Take a request and never answer; a port that does not even speak TLS is given up by Helm itself after 10 s."""
    await asyncio.Event().wait()


def _impatient(engine: Engine, environ: dict[str, str]) -> HelmCli:
    assert isinstance(engine, HelmCli)
    return HelmCli(engine._program, "v3.6.2", environ, deadline_s=3)


def test_version_when_asked_then_helm_and_how_it_is_run(engine: Engine) -> None:
    assert engine.version().split()[-1] in ("PATH", "embedded")


# The whole way


def boot(live: Live, pool: Desired, name: str = "gpu-1") -> None:
    taints = tuple(SandboxTaint(taint.key, taint.value, taint.effect) for taint in pool.effective_taints)
    gpu = GpuShape("A100-40GB", 8, ("1g.5gb",) * 7)
    live.run(live.cluster.add_node(NodeShape(name=name, labels=pool.labels, taints=taints, gpu=gpu, boot_s=1.0)))


def test_prove_when_a_cut_node_joins_then_its_devices_come_from_what_was_installed(
    keeper: ReleaseManager, kube: LightKube, live: Live
) -> None:
    keeper.install_or_upgrade(FRESH, 0)
    boot(live, CUT)
    proof = settled_proof(CUT, kube)
    assert (proof.status, proof.total) == ("proven", {"nvidia.com/gpu": 56}), proof.missing_step
    assert release_history(kube, RELEASE_NAME, NAMESPACE)[0].status == "deployed"


def test_run_when_done_then_no_kubeconfig_is_left(keeper: ReleaseManager) -> None:
    keeper.dry_run(FRESH)
    assert left_behind() == set()
