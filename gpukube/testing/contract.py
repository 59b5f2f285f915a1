"""The contract of a provider, one test per sentence.

Whoever writes a provider subclasses `ProviderContract`, supplies the `harness` fixture, and nothing else:

* What is created and observed again shows no difference.
* Creating twice makes one pool.
* Deleting a missing pool succeeds.
* What gpukube does not own is never touched: it is not planned for, and a creation of its name is refused.
* Every feature is exact, emulated or missing; none is silent.
* Every field has an updatability row that says what a change does, and where that is documented.
* Server defaults and autoscaled counts are no drift.
* Throttled, dropped and repeated calls converge.
* Capacity, quota, permission and conflict arrive as our classes; a busy cluster by the code the engine waits for.
* What failed is made by the next plan, once the cause is gone.
* No SDK is imported before `connect()`.
* Requests are accepted by the SDK's own validation.
* A cancelled wait returns a handle that resumes.

What may differ between clouds is an attribute of the harness, not an `if` in a test. The sentences on updates
join with `apply`.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Literal, Protocol

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.owners import solve_ownership
from gpukube.core.plan import plan_pool
from gpukube.core.resolve import promise_of
from gpukube.core.values import Change, Operation, Ownership
from gpukube.engine.wait import BUSY
from gpukube.errors import AccessError, CapacityError, Conflict, GpukubeError, QuotaError
from gpukube.provider import FEATURES

if TYPE_CHECKING:
    from gpukube.core.values import Desired, Observed, Request, Target
    from gpukube.provider import Cloud, Provider

__all__ = ["Fault", "Harness", "ProviderContract"]

Fault = Literal["throttle", "drop-before", "drop-after", "capacity", "quota", "permission", "busy"]

LOOKS = 2000
"""Polls until a test gives an operation up; the harness makes its cloud fast."""

FAULT_CLASSES: tuple[tuple[Fault, type[GpukubeError]], ...] = (
    ("capacity", CapacityError),
    ("quota", QuotaError),
    ("permission", AccessError),
    ("busy", Conflict),
)


class Harness(Protocol):
    """What a provider supplies: itself, a live cluster to play with, and the means to disturb it."""

    @property
    def provider(self) -> Provider:
        """The provider under test."""

    @property
    def cloud(self) -> Cloud:
        """A connected live half."""

    @property
    def package(self) -> str:
        """Import name of the provider's package."""

    @property
    def sdk(self) -> str:
        """Top-level module of its SDK, which must not be loaded early; "" when it has none."""

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        """Make a target of that kind, valid on this cloud."""

    def add_foreign_pool(self, name: str) -> None:
        """Make a pool of that cloud name behind gpukube's back, without our marks."""

    def move_count(self, name: str) -> None:
        """Change the live node count of a pool as its autoscaler would."""

    def inject(self, fault: Fault, pool: str) -> None:
        """Make the next creation of this pool meet that fault."""

    def accepts(self, request: Request) -> bool:
        """Say whether the SDK's own validation takes the request."""

    def pause(self) -> None:
        """Let a little of the cloud's time pass between two looks."""


class ProviderContract:
    """Subclass me, give me a `harness` fixture."""

    def test_observe_when_created_then_no_difference(self, harness: Harness) -> None:
        """What is created and observed again shows no difference."""
        for kind in ("plain", "mig", "autoscaled"):
            desired = _desired(harness, kind)
            _create(harness, desired)
            observed = _find(harness, desired)
            assert diff_fields(desired.fields, observed.fields) == ()
            assert (observed.owner, observed.pool) == (desired.target.owner, desired.target.pool)
            assert observed.state == "ready"

    def test_create_when_repeated_then_one_pool(self, harness: Harness) -> None:
        """Creating twice makes one pool."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        with pytest.raises(Conflict):
            harness.cloud.send(desired.create)
        assert [o.name for o in harness.cloud.pools()].count(desired.target.name) == 1
        assert plan_pool(harness.provider, desired, harness.cloud.pools()).action == "no-op"

    def test_delete_when_missing_then_succeeds(self, harness: Harness) -> None:
        """Deleting a missing pool succeeds, and so does deleting one that is there."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        request = harness.provider.delete_request(desired.target.cluster, _find(harness, desired))
        for _ in range(2):
            _finish(harness, harness.cloud.send(request))
        assert desired.target.name not in {o.name for o in harness.cloud.pools()}

    def test_plan_when_pool_is_foreign_then_nothing_is_sent(self, harness: Harness) -> None:
        """What gpukube does not own is never touched."""
        desired = _desired(harness, "plain")
        harness.add_foreign_pool(desired.target.name)
        plan = plan_pool(harness.provider, desired, harness.cloud.pools())
        assert plan.action == "conflict"
        assert plan.requests == ()
        assert [d.code for d in plan.diagnostics] == ["foreign-pool"]

    def test_create_when_pool_is_foreign_then_refused_and_left_alone(self, harness: Harness) -> None:
        """A creation does not overwrite what came in between plan and request."""
        desired = _desired(harness, "plain")
        harness.add_foreign_pool(desired.target.name)
        before = _find(harness, desired)
        with pytest.raises(Conflict):
            harness.cloud.send(desired.create)
        assert _find(harness, desired) == before

    def test_abilities_when_listed_then_no_feature_is_silent(self, harness: Harness) -> None:
        """Every feature is exact, emulated or missing; what is not exact says why."""
        abilities = harness.provider.abilities()
        assert set(FEATURES) <= set(abilities)
        assert all(a.fidelity == "exact" or a.reason for a in abilities.values())

    def test_update_row_when_field_changes_then_it_is_classified(self, harness: Harness) -> None:
        """Every field has an updatability row that says what a change does, and where that is documented."""
        for kind in ("plain", "mig", "autoscaled"):
            for field, value in _desired(harness, kind).fields.items():
                row = harness.provider.update_row(Change(field, value, None))
                assert row.sentence, field
                assert row.source, field
                assert bool(row.call) == (row.kind in ("in-place", "disruptive")), field

    def test_diff_when_autoscaler_moves_then_no_drift(self, harness: Harness) -> None:
        """Server defaults and autoscaled counts are no drift."""
        desired = _desired(harness, "autoscaled")
        _create(harness, desired)
        harness.move_count(desired.target.name)
        assert diff_fields(desired.fields, _find(harness, desired).fields) == ()

    @pytest.mark.parametrize("fault", ["throttle", "drop-before", "drop-after"])
    def test_create_when_call_is_disturbed_then_converges(self, harness: Harness, fault: Fault) -> None:
        """Throttled, dropped and repeated calls converge: one pool, no difference."""
        desired = _desired(harness, "plain")
        harness.inject(fault, desired.target.name)
        _converge(harness, desired)
        assert [o.name for o in harness.cloud.pools()].count(desired.target.name) == 1
        assert diff_fields(desired.fields, _find(harness, desired).fields) == ()

    @pytest.mark.parametrize(("fault", "error"), FAULT_CLASSES)
    def test_create_when_refused_then_our_class(
        self, harness: Harness, fault: Fault, error: type[GpukubeError]
    ) -> None:
        """Capacity, quota, permission and conflict arrive as our classes, with a remedy."""
        desired = _desired(harness, "plain")
        harness.inject(fault, desired.target.name)
        with pytest.raises(error) as caught:
            _create(harness, desired)
        assert caught.value.diagnostics[0].fix
        assert fault != "busy" or caught.value.diagnostics[0].code == BUSY

    @pytest.mark.parametrize("fault", ["capacity", "quota"])
    def test_create_when_the_cause_is_gone_then_made(self, harness: Harness, fault: Fault) -> None:
        """What failed is made by the next plan, in place of the failed pool where the cloud kept one."""
        desired = _desired(harness, "plain")
        harness.inject(fault, desired.target.name)
        with pytest.raises(GpukubeError):
            _create(harness, desired)
        assert plan_pool(harness.provider, desired, harness.cloud.pools()).action == "create"
        _converge(harness, desired)
        assert [o.name for o in harness.cloud.pools()].count(desired.target.name) == 1
        assert diff_fields(desired.fields, _find(harness, desired).fields) == ()

    def test_plan_when_no_cloud_was_contacted_then_no_sdk_is_loaded(self, harness: Harness) -> None:
        """No SDK is imported before `connect()`."""
        program = (
            f"import sys, {harness.package}; print([m for m in sys.modules if m.split('.')[0] == {harness.sdk!r}])"
        )
        answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        assert answer.stdout.strip() == "[]"

    def test_request_when_made_then_the_sdk_accepts_it(self, harness: Harness) -> None:
        """Requests are accepted by the SDK's own validation."""
        for kind in ("plain", "mig", "autoscaled"):
            assert harness.accepts(_desired(harness, kind).create)

    def test_wait_when_cancelled_then_the_handle_resumes(self, harness: Harness) -> None:
        """A cancelled wait returns a handle that resumes; so does following the pool itself."""
        desired = _desired(harness, "plain")
        operation = harness.cloud.send(desired.create)
        assert operation.pool == desired.target.name
        _finish(harness, operation)
        _finish(harness, Operation(operation.pool, operation.verb))
        assert _find(harness, desired).state == "ready"


def _desired(harness: Harness, kind: Literal["plain", "mig", "autoscaled"]) -> Desired:
    target = harness.target(kind)
    assert [d for d in harness.provider.check(target) if d.severity == "error"] == []
    ownership = solve_ownership(target, harness.provider.stack(target))
    assert isinstance(ownership, Ownership)
    return harness.provider.desired(target, ownership, promise_of(target))


def _create(harness: Harness, desired: Desired) -> None:
    _finish(harness, harness.cloud.send(desired.create))


def _finish(harness: Harness, operation: Operation) -> None:
    for _ in range(LOOKS):
        progress = harness.cloud.poll(operation)
        if progress.error is not None:
            raise progress.error
        if progress.done:
            return
        harness.pause()
    pytest.fail(f"{operation} is not done after {LOOKS} looks")


def _find(harness: Harness, desired: Desired) -> Observed:
    (found,) = [o for o in harness.cloud.pools() if o.name == desired.target.name]
    return found


def _converge(harness: Harness, desired: Desired) -> None:
    """Do what the engine does: observe, send what is missing, wait; a broken call is answered by doing it again."""
    for _ in range(3):
        plan = plan_pool(harness.provider, desired, harness.cloud.pools())
        try:
            for request in plan.requests:
                _finish(harness, harness.cloud.send(request))
        except GpukubeError:
            harness.pause()
    _finish(harness, Operation(desired.target.name, "create"))
