"""What tests of living pools do: create, look, send, wait, as the engine does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.state.snapshot import look
from gpukube.core.diff import diff_fields
from gpukube.core.plan import plan_pool
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.unit.gpukube_gke.edits import native_fields
from tests.unit.gpukube_gke.targets import PROVIDER, desire

if TYPE_CHECKING:
    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.core.values import Change, ClassifiedChange, Desired, Observed, Operation, Request, Target
    from gpukube_gke.live.client import GkeCloud
    from gpukube_sandbox.daemon import SandboxInfo

CALLS = 16
UNTOLD = {"etag", "status", "instanceGroupUrls", "autoscaling.enabled"}
"""What the service writes by itself; an autoscaler that comes or goes is told by its bounds."""


def finish(cloud: GkeCloud, operation: Operation) -> None:
    """Wait; raises what it ends with."""

    def is_done() -> bool:
        progress = cloud.poll(operation)
        if progress.error:
            raise progress.error
        return progress.done

    wait_for(is_done, lambda: cloud.poll(operation), every_s=0.005)


def create(cloud: GkeCloud, target: Target) -> Desired:
    desired = desire(target)
    finish(cloud, cloud.send(desired.create))
    return desired


def find(cloud: GkeCloud, name: str = "edited") -> Observed:
    found = cloud.pool(name)
    assert found is not None
    return found


def planned(cloud: GkeCloud, desired: Desired) -> tuple[ClassifiedChange, ...]:
    return plan_pool(PROVIDER, desired, cloud.pools()).changes


def differences(desired: Desired, observed: Observed) -> tuple[Change, ...]:
    """What differs for the engine: a tag that gpukube wrote and that is declared no more does, too."""
    return diff_fields(desired.fields, observed.fields, observed.written)


def first_request(cloud: GkeCloud, desired: Desired) -> Request:
    """What the engine would send now."""
    observed = find(cloud)
    return PROVIDER.requests.update(desired, observed, differences(desired, observed))[0]


def bring_about(cloud: GkeCloud, desired: Desired) -> list[Request]:
    """Send and look until nothing differs; gives the calls."""
    sent: list[Request] = []
    while changes := differences(desired, find(cloud)):
        assert len(sent) < CALLS, changes
        sent.append(first_request(cloud, desired))
        finish(cloud, cloud.send(sent[-1]))
    return sent


def moved(before: Observed, after: Observed) -> set[str]:
    """Paths of the pool, as the API shows it, that are not what they were."""
    old, new = native_fields(before.native), native_fields(after.native)
    return {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)} - UNTOLD


def machines(info: SandboxInfo, pool: str = "edited") -> list[str]:
    """Names of the nodes of a pool."""
    clusters = cast("list[dict[str, list[dict[str, object]]]]", daemon.status(info)["clusters"])
    (found,) = [one for cluster in clusters for one in cluster["pools"] if one["name"] == pool]
    return cast("list[str]", found["nodes"])


def prove(cloud: GkeCloud, desired: Desired) -> PoolProof:
    """Look at the nodes until they show what was promised."""
    kube = connect_kube(cloud.kube_access(), 60.0)

    def proof() -> PoolProof:
        return prove_pool(desired, look(kube))

    try:
        found = wait_for(lambda: seen if (seen := proof()).status == "proven" else None, proof, every_s=0.05)
    finally:
        kube.close()
    assert found is not None
    return found
