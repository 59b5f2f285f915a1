"""The contract of a provider, one test per requirement.

To test a provider, subclass `ProviderContract` and define the `harness` fixture, and nothing else:

* A created pool shows no difference when it is read.
* Creating twice creates one pool.
* Deleting a missing pool succeeds.
* Pools that gpukube does not own are never touched: no change is planned, and creating a pool of that name is rejected.
* Every feature is exact, emulated, or missing; none is left out.
* Every field has an updatability row with the effect of a change and its documentation.
* Server defaults and autoscaled counts are not drift.
* Throttled, dropped, and repeated calls converge.
* Capacity, quota, permission, and conflict errors have gpukube's classes; a busy cluster has the code that
  the engine waits for.
* A failed creation succeeds with the next plan, once the cause is gone.
* Its part of the spec is consistent: clusters, their address, patterns, and codes.
* Importing a live pool yields only what somebody chose.
* Properties of its nodes for pods are known before there is a node: resources, labels, and the pool's selector.
* No SDK is imported before `connect()`.
* Requests pass the SDK's own validation.
* Its policies state the purpose and the documentation of each permission; apply includes what plan needs.
* A failed launch has the class of its error; a pool with its nodes has none.
* A pool that names no reservation has none, declared or live.
* A pool that can be created without nodes gets them by scaling, and is then as the spec says.
* A cancelled wait returns a handle that resumes.

* An in-place change uses its own calls, leaves everything else unchanged, and shows no difference afterwards.
* An update does not overwrite a change made since the pool was read.
* Repeating an applied update is harmless.
* Scaling a pool changes nothing else.
* Adopting a pool without an owner changes only its marks.
* Replaced labels are restored from the copy of the marks; until then the pool is protected.
* A copy cloned to another pool proves nothing; a pool whose copy names another owner is adopted only if that owner is
  named.
* A missing copy is not a difference; the next change writes it if the cloud can.
* A pool of gpukube's own shows no other manager.
* A released pool has no marks and no valid copy, is otherwise unchanged, and anybody may adopt it.
* A tag that leaves the spec is removed; tags of others stay.
* Reading one pool returns it as in the list, or None if it is missing.

Differences between clouds are attributes of the harness, not an `if` in a test.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING, Final, Literal, Protocol

import pytest

from gpukube.core.capacity_sources import CloudCapacity
from gpukube.core.cloud_catalog import CloudCatalog
from gpukube.core.cloud_check import Diagnosis
from gpukube.core.diff import diff_fields
from gpukube.core.durations import CloudDurations
from gpukube.core.fields import COUNT, INSTANCE_TYPE, KUBERNETES_VERSION, LEAST, MOST, SCOPE, ZONES, label, tag
from gpukube.core.in_cluster import InClusterFacts
from gpukube.core.node_facts import NodeFacts
from gpukube.core.owners import solve_ownership
from gpukube.core.permissions import EXTRAS, ClusterPools, PolicyScope
from gpukube.core.plan import plan_pool
from gpukube.core.provider_parts import Extras, PoolRequests
from gpukube.core.quotas import CloudQuotas
from gpukube.core.resolve import promise_of
from gpukube.core.scaling_order import ClassOrder, GroupOrder
from gpukube.core.values import MARKS, OWNER_LABEL, POOL_LABEL, RELEASED_LABEL, Change, Operation, Ownership, Taint
from gpukube.errors import AccessError, Busy, CapacityError, Conflict, GpukubeError, Moved, QuotaError
from gpukube.gpu.cloud_machines import CloudMachines
from gpukube.provider import FEATURES, CloudExtras
from gpukube.rule_ids import rule_numbers
from gpukube.spec.cloud import CloudSpec
from gpukube.spec.reference.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from gpukube.core.fields import FieldPath
    from gpukube.core.permissions import PolicyLevel
    from gpukube.core.values import Desired, Nodes, Observed, Request, Target
    from gpukube.provider import Cloud, Provider

__all__ = ["Fault", "Harness", "ProviderContract"]

Fault = Literal["throttle", "drop-before", "drop-after", "capacity", "quota", "permission", "busy"]

LOOKS = 6000
"""Polls until a test abandons an operation; the harness speeds up its cloud."""
CALLS = 10
"""Maximum number of calls of an update."""

FAULT_CLASSES: tuple[tuple[Fault, type[GpukubeError]], ...] = (
    ("capacity", CapacityError),
    ("quota", QuotaError),
    ("permission", AccessError),
    ("busy", Busy),
)


PARTS: Final[Mapping[str, type]] = {
    "spec": CloudSpec,
    "machines": CloudMachines,
    "nodes": NodeFacts,
    "codes": Mapping,
    "requests": PoolRequests,
    "extras": Extras,
}
"""Members of a provider with their types."""
EXTRA_PARTS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "in_cluster": InClusterFacts,
    "diagnosis": (Diagnosis, NoneType),
    "catalog": (CloudCatalog, NoneType),
    "capacity": (CloudCapacity, NoneType),
    "order": (GroupOrder, ClassOrder, NoneType),
    "quotas": (CloudQuotas, NoneType),
    "durations": (CloudDurations, NoneType),
    "exporters": Mapping,
}
"""Extras of a provider with their types."""
EXTRA_CALLS: Final = ("policies", "managers", "chosen_fields", "check_coexistence")


class Harness(Protocol):
    """What a provider supplies: itself, a live cluster for tests, and the means to disturb it."""

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
        """Top-level module of its SDK, which must not be loaded early; "" if it has none."""

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        """Return a target of that kind, valid on this cloud."""

    def add_foreign_pool(self, name: str) -> None:
        """Create a pool with that cloud name outside gpukube, without ownership labels."""

    def move_count(self, name: str) -> None:
        """Change the live node count of a pool as its autoscaler would."""

    def inject(self, fault: Fault, pool: str) -> None:
        """Inject that fault into the next creation of this pool."""

    def edits(self) -> Mapping[str, Target]:
        """Return `target("plain")` with one thing changed, by a name for it: every kind of in-place change."""

    def replace_labels(self, name: str, labels: Mapping[str, str]) -> None:
        """Replace the whole label map of a live pool outside gpukube, as `az --labels` does."""

    def without_copy(self, request: Request) -> Request:
        """Return a creation as sent by a gpukube version without the copy of the marks."""

    def clone(self, name: str, to: str) -> None:
        """Create a pool outside gpukube with the tags of another one and without its labels."""

    def add_tag(self, name: str, key: str, value: str) -> None:
        """Add a tag to a live pool outside gpukube."""

    def touch(self, name: str) -> str:
        """Change a label of a live pool with another client; return the label's key."""

    def accepts(self, request: Request) -> bool:
        """Return whether the request passes the SDK's own validation."""

    def pause(self) -> None:
        """Let a little of the cloud's time pass between two reads."""


class ProviderContract:
    """Subclass this and define a `harness` fixture."""

    def test_observe_when_created_then_no_difference(self, harness: Harness) -> None:
        """A created pool shows no difference when it is read."""
        for kind in ("plain", "mig", "autoscaled"):
            desired = _desired(harness, kind)
            _create(harness, desired)
            observed = _find(harness, desired)
            assert diff_fields(desired.fields, observed.fields) == ()
            assert (observed.owner, observed.pool) == (desired.target.owner, desired.target.pool)
            assert observed.state == "ready"
            assert harness.provider.extras.managers(observed) == ()

    def test_create_when_repeated_then_one_pool(self, harness: Harness) -> None:
        """Creating twice creates one pool."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        with pytest.raises(Conflict):
            harness.cloud.send(desired.create)
        assert [o.name for o in harness.cloud.pools()].count(desired.target.name) == 1
        assert plan_pool(harness.provider, desired, harness.cloud.pools()).action == "no-op"

    def test_delete_when_missing_then_succeeds(self, harness: Harness) -> None:
        """Deleting succeeds for an existing and for a missing pool."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        request = harness.provider.requests.delete(desired.target.cluster, _find(harness, desired))
        for _ in range(2):
            _finish(harness, harness.cloud.send(request))
        assert desired.target.name not in {o.name for o in harness.cloud.pools()}

    def test_plan_when_pool_is_foreign_then_nothing_is_sent(self, harness: Harness) -> None:
        """Pools that gpukube does not own are never touched."""
        desired = _desired(harness, "plain")
        harness.add_foreign_pool(desired.target.name)
        plan = plan_pool(harness.provider, desired, harness.cloud.pools())
        assert plan.action == "conflict"
        assert plan.requests == ()
        assert [d.code for d in plan.diagnostics] == ["foreign-pool"]

    def test_create_when_pool_is_foreign_then_refused_and_left_alone(self, harness: Harness) -> None:
        """A creation does not overwrite a pool created between plan and request."""
        desired = _desired(harness, "plain")
        harness.add_foreign_pool(desired.target.name)
        before = _find(harness, desired)
        with pytest.raises(Conflict):
            harness.cloud.send(desired.create)
        assert _find(harness, desired) == before

    def test_abilities_when_listed_then_no_feature_is_silent(self, harness: Harness) -> None:
        """Every feature is exact, emulated, or missing; each that is not exact has a reason."""
        abilities = harness.provider.abilities()
        assert set(FEATURES) <= set(abilities)
        assert all(a.fidelity == "exact" or a.reason for a in abilities.values())

    def test_tolerations_when_asked_for_then_a_plain_answer(self, harness: Harness) -> None:
        """Whether admission adds tolerations for taints of requested resources is stated."""
        assert isinstance(harness.provider.extras.tolerates_resources, bool)

    def test_nodes_when_described_then_pods_find_them_and_fit(self, harness: Harness) -> None:
        """Properties of its nodes for pods are known before there is one: resources, labels, selector."""
        for kind in ("plain", "mig", "autoscaled"):
            desired = _desired(harness, kind)
            facts, machine = harness.provider.nodes, desired.target.machine
            labels, selector = facts.labels(desired), facts.selector(desired)
            assert desired.target.name in selector.values(), "the selector lacks the pool's own label"
            assert selector.items() <= labels.items()
            assert desired.labels.items() <= labels.items(), "the nodes lack labels of the pool"
            assert labels["node.kubernetes.io/instance-type"] == machine.name
            assert not labels.keys() & {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
            room = facts.room(desired.target)
            assert room is not None
            assert 0 < room.cpu < (machine.vcpus or 0) * 1000
            assert 0 < room.memory < (machine.memory_gib or 0) * 1024**3
            assert room.pods > 0

    def test_spec_when_looked_at_then_its_parts_fit(self, harness: Harness) -> None:
        """Its part of the spec is consistent: clusters, their address, and patterns."""
        name, spec = harness.provider.name, harness.provider.spec
        assert spec.cluster.__name__ == f"{name.capitalize()}Cluster"
        cluster = spec.cluster.model_validate({"provider": name, **spec.stand_ins})
        assert {*spec.address} <= cluster.model_dump(by_alias=True, exclude_none=True).keys()
        models = [spec.cluster, *([spec.reserved] if spec.reserved else [])]
        patterns = {found for model in models for found in _patterns(model.model_json_schema())}
        assert patterns <= {*FORMATS, *spec.formats}, "a pattern has no description in formats"

    def test_parts_when_loaded_then_each_is_of_its_kind(self, harness: Harness) -> None:
        """Its parts can be imported, and have the expected types."""
        provider, extras = harness.provider, harness.provider.extras
        assert [name for name, kind in PARTS.items() if not isinstance(getattr(provider, name), kind)] == []
        assert [name for name, kind in EXTRA_PARTS.items() if not isinstance(getattr(extras, name), kind)] == []
        assert [name for name in EXTRA_CALLS if not callable(getattr(extras, name))] == []

    def test_order_when_the_autoscaler_takes_one_then_pools_are_told_apart(self, harness: Harness) -> None:
        """A pattern is for one pool only; a pool of a class has its label and taint from the start."""
        order = harness.provider.extras.order
        if isinstance(order, GroupOrder):
            one, another = order.group("gpu"), order.group("gpub")
            assert one != another
            assert all(re.fullmatch(r"\^.+\$", re.compile(pattern).pattern) for pattern in (one, another))
        elif isinstance(order, ClassOrder):
            found = _translated(harness, replace(harness.target("autoscaled"), family="gpu"))
            assert found.labels[order.key] == "gpu"
            assert Taint(order.key, "gpu", "NoSchedule") in found.effective_taints

    def test_rules_when_listed_then_each_has_a_number_of_its_own(self, harness: Harness) -> None:
        """Its codes start with its name, and no other installed package uses their numbers."""
        name, codes = harness.provider.name, harness.provider.codes
        assert all(code.startswith(f"{name}-") for code in codes)
        assert all(re.fullmatch(r"[A-Z]+[0-9]{3}", number) for number, _ in codes.values())
        others = [number for code, number in rule_numbers().items() if code not in codes]
        numbers = Counter([*others, *(number for number, _ in codes.values())])
        assert [number for number, count in numbers.items() if count > 1] == []

    def test_update_row_when_field_changes_then_it_is_classified(self, harness: Harness) -> None:
        """Every field has an updatability row with the effect of a change and its documentation."""
        for kind in ("plain", "mig", "autoscaled"):
            for field, value in _desired(harness, kind).fields.items():
                row = harness.provider.update_row(Change(field, value, None))
                assert row.sentence, field
                assert row.source, field
                assert bool(row.call) == (row.kind in ("in-place", "disruptive")), field

    def test_diff_when_autoscaler_moves_then_no_drift(self, harness: Harness) -> None:
        """Server defaults and autoscaled counts are not drift."""
        desired = _desired(harness, "autoscaled")
        _create(harness, desired)
        harness.move_count(desired.target.name)
        assert diff_fields(desired.fields, _find(harness, desired).fields) == ()

    @pytest.mark.parametrize("fault", ["throttle", "drop-before", "drop-after"])
    def test_create_when_call_is_disturbed_then_converges(self, harness: Harness, fault: Fault) -> None:
        """Throttled, dropped, and repeated calls converge: one pool, no difference."""
        desired = _desired(harness, "plain")
        harness.inject(fault, desired.target.name)
        _converge(harness, desired)
        assert [o.name for o in harness.cloud.pools()].count(desired.target.name) == 1
        assert diff_fields(desired.fields, _find(harness, desired).fields) == ()

    @pytest.mark.parametrize(("fault", "error"), FAULT_CLASSES)
    def test_create_when_refused_then_our_class(
        self, harness: Harness, fault: Fault, error: type[GpukubeError]
    ) -> None:
        """Capacity, quota, permission, and conflict errors have gpukube's classes, with a fix."""
        desired = _desired(harness, "plain")
        harness.inject(fault, desired.target.name)
        with pytest.raises(error) as caught:
            _create(harness, desired)
        assert caught.value.diagnostics[0].fix

    @pytest.mark.parametrize("fault", ["capacity", "quota"])
    def test_create_when_the_cause_is_gone_then_made(self, harness: Harness, fault: Fault) -> None:
        """A failed creation succeeds with the next plan, replacing the failed pool if the cloud kept one."""
        desired = _desired(harness, "plain")
        harness.inject(fault, desired.target.name)
        with pytest.raises(GpukubeError):
            _create(harness, desired)
        assert plan_pool(harness.provider, desired, harness.cloud.pools()).action == "create"
        _converge(harness, desired)
        assert [o.name for o in harness.cloud.pools()].count(desired.target.name) == 1
        assert diff_fields(desired.fields, _find(harness, desired).fields) == ()

    @pytest.mark.parametrize(("fault", "error"), FAULT_CLASSES[:2])
    def test_launches_when_one_failed_then_its_class(
        self, harness: Harness, fault: Fault, error: type[GpukubeError]
    ) -> None:
        """A failed launch has the class of its error, if the cloud kept the pool; a pool with its nodes has none."""
        if type(harness.cloud).launches is CloudExtras.launches:
            pytest.skip("the cloud does not report its launches")
        desired = _desired(harness, "plain")
        harness.inject(fault, desired.target.name)
        with pytest.raises(error):
            _create(harness, desired)
        for left in harness.cloud.pools():
            if left.name == desired.target.name and left.fields:  # one without fields is what is left of a pool
                assert isinstance(harness.cloud.launches(left).failure, error)
        _converge(harness, desired)
        found = harness.cloud.launches(_find(harness, desired))
        assert found.failure is None or (found.failed_at or 0) <= (found.launched_at or 0)

    def test_reserved_when_a_pool_names_no_reservation_then_none(self, harness: Harness) -> None:
        """A pool that is bought on demand has no reservation, declared or live."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        assert harness.cloud.reserved(desired) is None
        assert harness.cloud.reserved(_find(harness, desired)) is None

    def test_create_when_without_nodes_then_scaling_brings_them(self, harness: Harness) -> None:
        """A pool that can be created without nodes gets them by scaling, and is then as the spec says."""
        if not harness.provider.extras.starts_empty:
            pytest.skip("the cloud creates pools with their nodes")
        desired = _desired(harness, "plain")
        nodes = desired.target.nodes
        empty = _translated(harness, replace(desired.target, nodes=replace(nodes, count=0, minimum=0)))
        _create(harness, empty)
        found = _find(harness, empty)
        assert (found.state, found.nodes) == ("ready", 0)
        _finish(harness, harness.cloud.send(harness.provider.requests.scale(desired.target.cluster, found, nodes)))
        assert diff_fields(desired.fields, _find(harness, desired).fields) == ()

    def test_update_when_applied_then_no_difference_and_nothing_else_moved(self, harness: Harness) -> None:
        """An in-place change uses its own calls, leaves everything else unchanged, and shows no difference afterwards.

        Repeating an applied call is harmless: it changes nothing or is rejected.
        """
        desired = _desired(harness, "plain")
        _create(harness, desired)
        before = _find(harness, desired)
        for name, target in harness.edits().items():
            edited = _translated(harness, target)
            changes = diff_fields(edited.fields, before.fields)
            assert changes, name
            assert {harness.provider.update_row(c).kind for c in changes} <= {"in-place", "disruptive"}, name
            after = _bring_about(harness, edited)
            changed = {c.field for c in changes}
            assert diff_fields(edited.fields, after.fields) == (), name
            assert _without(after.fields, changed) == _without(before.fields, changed), name
            before = _bring_about(harness, desired)
            assert diff_fields(desired.fields, before.fields) == (), name

    def test_update_when_sent_then_the_sdk_accepts_it(self, harness: Harness) -> None:
        """Update requests pass the SDK's own validation."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        observed = _find(harness, desired)
        for name, target in harness.edits().items():
            edited = _translated(harness, target)
            changes = diff_fields(edited.fields, observed.fields)
            requests = harness.provider.requests.update(edited, observed, changes)
            assert requests, name
            assert all(harness.accepts(request) for request in requests), name

    def test_update_when_the_pool_moved_then_not_overwritten(self, harness: Harness) -> None:
        """An update does not overwrite a change made since the pool was read."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        for name, target in harness.edits().items():
            edited, observed = _translated(harness, target), _find(harness, desired)
            changes = diff_fields(edited.fields, observed.fields)
            request = harness.provider.requests.update(edited, observed, changes)[0]
            key = harness.touch(desired.target.name)
            touched = _find(harness, desired).labels[key]
            met = _sent(harness, request)
            assert met is None or isinstance(met, Moved), name
            assert _find(harness, desired).labels.get(key) == touched, name
            _bring_about(harness, desired)

    def test_scale_when_asked_then_only_the_size_changes(self, harness: Harness) -> None:
        """Scaling a pool changes nothing else."""
        for kind in ("plain", "autoscaled"):
            desired = _desired(harness, kind)
            _create(harness, desired)
            before = _find(harness, desired)
            nodes = _doubled(desired.target.nodes)
            request = harness.provider.requests.scale(desired.target.cluster, before, nodes)
            assert harness.accepts(request)
            _finish(harness, harness.cloud.send(request))
            after = _find(harness, desired)
            sizes = {field for field in (*before.fields, *after.fields) if field.is_below("nodes")}
            assert _without(after.fields, sizes) == _without(before.fields, sizes)
            expected = {LEAST: nodes.minimum, MOST: nodes.maximum} if nodes.autoscaled else {COUNT: nodes.count}
            kept = {field: before.fields[field] for field in (SCOPE,) if field in before.fields}
            assert {field: after.fields.get(field) for field in sizes} == {**kept, **expected}

    def test_freeze_when_autoscaled_then_nothing_resizes_the_pool_any_more(self, harness: Harness) -> None:
        """Freezing a pool before it is drained keeps its nodes and changes nothing else."""
        desired, fixed = _desired(harness, "autoscaled"), _desired(harness, "plain")
        cluster = desired.target.cluster
        _create(harness, desired)
        before = _find(harness, desired)
        request = harness.provider.requests.freeze(cluster, before)
        assert request is not None
        assert harness.accepts(request)
        _finish(harness, harness.cloud.send(request))
        after = _find(harness, desired)
        sizes = {field for field in (*before.fields, *after.fields) if field.is_below("nodes")}
        assert _without(after.fields, sizes) == _without(before.fields, sizes)
        assert after.fields.get(LEAST) == after.fields.get(MOST), "the bounds still leave room to scale"
        assert harness.provider.requests.freeze(cluster, after) is None
        if fixed.target.name != desired.target.name:
            _create(harness, fixed)
            assert harness.provider.requests.freeze(cluster, _find(harness, fixed)) is None

    def test_import_when_a_pool_is_read_then_only_what_was_chosen_is_left(self, harness: Harness) -> None:
        """Importing a live pool leaves out the cloud's defaults and keeps what somebody chose."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        observed = _find(harness, desired)
        chosen = harness.provider.extras.chosen_fields(observed)
        assert {INSTANCE_TYPE, COUNT} <= chosen.keys()
        added = {path for path in chosen if path not in desired.fields and not path.is_below(harness.provider.name)}
        assert added <= {ZONES, KUBERNETES_VERSION}, f"nobody chose {sorted(map(str, added))}"

    def test_adopt_when_nobody_owns_it_then_only_marks_change(self, harness: Harness) -> None:
        """Adopting a pool without an owner changes only its marks; labels that disrupt pods wait for a later run."""
        desired = _desired(harness, "plain")
        marks = desired.labels.keys() - desired.target.labels.keys()
        _finish(harness, harness.cloud.send(harness.without_copy(desired.create)))
        harness.replace_labels(desired.target.name, desired.target.labels)
        assert _find(harness, desired).owner == ""
        plan = plan_pool(harness.provider, desired, harness.cloud.pools(), adopt=True)
        assert plan.action == "adopt"
        for request in plan.requests:
            _finish(harness, harness.cloud.send(request))
        adopted = plan_pool(harness.provider, desired, harness.cloud.pools())
        assert (_find(harness, desired).owner, _find(harness, desired).pool) == (
            desired.target.owner,
            desired.target.pool,
        )
        later = any(found.code == "adopt-differs" for found in plan.diagnostics)
        assert adopted.action == ("update" if later else "no-op")
        assert {c.change.field for c in adopted.changes} <= {label(key) for key in marks}

    def test_plan_when_labels_were_replaced_then_the_copy_mends_them(self, harness: Harness) -> None:
        """Replaced labels are restored from the copy of the marks; until then the pool is protected.

        If the copy cannot change, its owner may have released the pool: then only adopting restores the labels.
        """
        desired = _desired(harness, "plain")
        _create(harness, desired)
        harness.replace_labels(desired.target.name, {"team": "other"})
        live = _find(harness, desired)
        assert (live.owner, live.pool, live.protected) == ("", "", True)
        adopt = desired.copy_is_fixed
        plan = plan_pool(harness.provider, desired, harness.cloud.pools())
        if adopt:
            assert (plan.action, [d.code for d in plan.diagnostics]) == ("conflict", ["marks-lost"])
            plan = plan_pool(harness.provider, desired, harness.cloud.pools(), adopt=True)
        assert plan.action == ("adopt" if adopt else "update")
        assert {label(OWNER_LABEL), label(POOL_LABEL)} <= {c.change.field for c in plan.changes}
        for _ in range(CALLS):
            plan = plan_pool(harness.provider, desired, harness.cloud.pools(), adopt=adopt)
            if plan.action == "no-op":
                break
            _finish(harness, harness.cloud.send(plan.requests[0]))
        live = _find(harness, desired)
        assert plan.action == "no-op"
        assert (live.owner, live.pool, live.protected) == (desired.target.owner, desired.target.pool, False)

    def test_plan_when_the_tags_were_cloned_then_they_prove_nothing(self, harness: Harness) -> None:
        """A copy cloned to another pool proves nothing, neither for its name nor for the original pool."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        clone = f"{desired.target.name}2"
        harness.clone(desired.target.name, clone)
        named = _translated(harness, replace(desired.target, name=clone))
        only = tuple(o for o in harness.cloud.pools() if o.name == clone)
        assert [(o.copy, o.copied) for o in only] == [(None, True)]
        assert plan_pool(harness.provider, desired, only).action == "create"
        plan = plan_pool(harness.provider, named, only)
        assert (plan.action, [d.code for d in plan.diagnostics]) == ("conflict", ["foreign-pool"])
        assert plan_pool(harness.provider, desired, harness.cloud.pools()).action == "no-op"

    def test_adopt_when_the_copy_names_another_then_its_owner_must_be_named(self, harness: Harness) -> None:
        """A pool whose copy names another owner is adopted only if that owner is named, and can then be restored."""
        theirs = _translated(harness, replace(harness.target("plain"), owner="others"))
        ours = _desired(harness, "plain")
        _create(harness, theirs)
        harness.replace_labels(ours.target.name, ours.target.labels)
        for options in ({}, {"adopt": True}, {"adopt": True, "adopt_from": ("somebody",)}):
            plan = plan_pool(harness.provider, ours, harness.cloud.pools(), **options)
            assert (plan.action, [d.code for d in plan.diagnostics]) == ("conflict", ["foreign-copy"])
        plan = plan_pool(harness.provider, ours, harness.cloud.pools(), adopt_from=("others",))
        assert plan.action == "adopt"
        for request in plan.requests:
            _finish(harness, harness.cloud.send(request))
        assert plan_pool(harness.provider, theirs, harness.cloud.pools()).action == "conflict", "labels take precedence"
        harness.replace_labels(ours.target.name, ours.target.labels)
        live = harness.cloud.pools()
        actions = [plan_pool(harness.provider, desired, live, adopt=True).action for desired in (theirs, ours)]
        assert actions == (["adopt", "conflict"] if ours.copy_is_fixed else ["conflict", "adopt"])
        codes = [plan_pool(harness.provider, desired, live).diagnostics[:1] for desired in (theirs, ours)]
        fixed = ["marks-lost", "foreign-copy"] if ours.copy_is_fixed else ["foreign-copy"]
        assert [found.code for one in codes for found in one] == fixed

    def test_update_when_there_is_no_copy_then_it_comes_with_the_next_change(self, harness: Harness) -> None:
        """A missing copy is not a difference; the next change writes it if the cloud can."""
        desired = _desired(harness, "plain")
        _finish(harness, harness.cloud.send(harness.without_copy(desired.create)))
        assert _find(harness, desired).copy is None
        assert plan_pool(harness.provider, desired, harness.cloud.pools()).action == "no-op"
        edited = _translated(harness, replace(desired.target, labels={"team": "speech"}))
        _bring_about(harness, edited)
        assert _find(harness, edited).copy == (None if desired.copy_is_fixed else edited.copy)

    def test_release_when_done_then_a_stranger_that_anybody_may_adopt(self, harness: Harness) -> None:
        """A released pool has no marks and no valid copy; it keeps its owner until the last call, and other fields."""
        desired = _desired(harness, "plain")
        theirs = _translated(harness, replace(harness.target("plain"), owner="others"))
        _create(harness, desired)
        before = _find(harness, desired)
        released = before
        for _ in range(CALLS):
            requests = harness.provider.requests.release(desired.target.cluster, released)
            if not requests:
                break
            assert (released.owner, released.pool) == (desired.target.owner, desired.target.pool)
            _finish(harness, harness.cloud.send(requests[0]))
            released = _find(harness, desired)
        assert (released.owner, released.pool, released.copy, released.protected) == ("", "", None, False)
        assert released.released == desired.target.pool
        ours = {ZONES, *(label(key) for key in (*MARKS, RELEASED_LABEL))}  # clouds need not read zones of other pools
        kept = [{path: value for path, value in one.fields.items() if path not in ours} for one in (before, released)]
        assert kept[0] == kept[1]
        assert (released.effective_taints, released.nodes) == (before.effective_taints, before.nodes)
        for spec in (desired, theirs):
            plan = plan_pool(harness.provider, spec, (released,))
            assert (plan.action, [d.code for d in plan.diagnostics]) == ("conflict", ["foreign-pool"])
        _finish(harness, harness.cloud.send(plan_pool(harness.provider, theirs, (released,), adopt=True).requests[0]))
        assert (_find(harness, theirs).owner, _find(harness, theirs).labels.get(RELEASED_LABEL)) == ("others", None)

    def test_release_when_the_pool_changed_since_it_was_read_then_nothing_is_overwritten(
        self, harness: Harness
    ) -> None:
        """A label added since the pool was read survives the release."""
        desired = _desired(harness, "plain")
        _create(harness, desired)
        before = _find(harness, desired)
        added = harness.touch(desired.target.name)
        request = harness.provider.requests.release(desired.target.cluster, before)[-1]
        try:
            _finish(harness, harness.cloud.send(request))
        except Moved:
            assert _find(harness, desired).owner == desired.target.owner
        assert added in _find(harness, desired).labels

    def test_plan_when_a_tag_left_the_spec_then_it_goes_and_those_of_others_stay(self, harness: Harness) -> None:
        """A tag that leaves the spec is removed; tags of others stay."""
        tagged = _translated(harness, replace(harness.target("plain"), tags={"cost": "1", "team": "a"}))
        _create(harness, tagged)
        harness.add_tag(tagged.target.name, "policy", "theirs")
        assert plan_pool(harness.provider, tagged, harness.cloud.pools()).action == "no-op"
        fewer = _translated(harness, replace(tagged.target, tags={"cost": "1"}))
        plan = plan_pool(harness.provider, fewer, harness.cloud.pools())
        assert [(c.change.field, c.change.old, c.change.new) for c in plan.changes] == [(tag("team"), "a", None)]
        assert {c.row.kind for c in plan.changes} == {"disruptive" if fewer.copy_is_fixed else "in-place"}
        for request in plan.requests:
            _finish(harness, harness.cloud.send(request))
        live = _find(harness, fewer)
        assert {field for field in live.fields if field.is_below("tags")} >= {tag("cost"), tag("policy")}
        assert tag("team") not in live.fields
        assert (live.copy, live.written) == (fewer.copy, frozenset({tag("cost")}))
        assert plan_pool(harness.provider, fewer, harness.cloud.pools()).action == "no-op"

    def test_pool_when_read_alone_then_as_in_the_list(self, harness: Harness) -> None:
        """Reading one pool returns it as in the list, or None if it is missing."""
        desired = _desired(harness, "plain")
        assert harness.cloud.pool(desired.target.name) is None
        _create(harness, desired)
        assert harness.cloud.pool(desired.target.name) == _find(harness, desired)

    def test_plan_when_no_cloud_was_contacted_then_no_sdk_is_loaded(self, harness: Harness) -> None:
        """No SDK is imported before `connect()`."""
        program = (
            f"import sys, {harness.package}; print([m for m in sys.modules if m.split('.')[0] == {harness.sdk!r}])"
        )
        answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        assert answer.stdout.strip() == "[]"

    def test_request_when_made_then_the_sdk_accepts_it(self, harness: Harness) -> None:
        """Requests pass the SDK's own validation."""
        for kind in ("plain", "mig", "autoscaled"):
            assert harness.accepts(_desired(harness, kind).create)

    def test_policies_when_written_then_each_permission_has_its_reason(self, harness: Harness) -> None:
        """Its policies state the purpose and the documentation of each permission."""
        desired = _desired(harness, "plain")
        clusters = (ClusterPools(desired.target.cluster, (desired,)),)
        granted: dict[PolicyLevel, set[str]] = {}
        levels: tuple[PolicyLevel, ...] = ("plan", "apply")
        for level in levels:
            found = harness.provider.extras.policies(PolicyScope(level, frozenset(EXTRAS), clusters))
            rows = [row for policy in found for row in policy.permissions]
            assert all(row.purpose and row.source and row.calls for row in rows)
            assert all(desired.target.cluster.key in policy.clusters and policy.documents for policy in found)
            assert len({policy.file for policy in found}) == len(found)
            granted[level] = {row.name for row in rows}
        assert granted["plan"] <= granted["apply"]

    def test_wait_when_cancelled_then_the_handle_resumes(self, harness: Harness) -> None:
        """A cancelled wait returns a handle that resumes; so does following the pool itself."""
        desired = _desired(harness, "plain")
        operation = harness.cloud.send(desired.create)
        assert operation.pool == desired.target.name
        _finish(harness, operation)
        _finish(harness, Operation(operation.pool, operation.verb))
        assert _find(harness, desired).state == "ready"


def _patterns(node: object) -> Iterator[str]:
    if isinstance(node, list):
        yield from (found for item in node for found in _patterns(item))
    elif isinstance(node, dict):
        if isinstance(pattern := node.get("pattern"), str):
            yield pattern
        yield from (found for value in node.values() for found in _patterns(value))


def _desired(harness: Harness, kind: Literal["plain", "mig", "autoscaled"]) -> Desired:
    return _translated(harness, harness.target(kind))


def _translated(harness: Harness, target: Target) -> Desired:
    assert [d for d in harness.provider.check(target) if d.severity == "error"] == []
    ownership = solve_ownership(target, harness.provider.stack(target))
    assert isinstance(ownership, Ownership)
    return harness.provider.desired(target, ownership, promise_of(target))


def _bring_about(harness: Harness, desired: Desired) -> Observed:
    """Do what the engine does: read, send the first remaining call, wait, and repeat.

    Returns:
        The pool as last read, without differences.
    """
    for _ in range(CALLS):
        observed = _find(harness, desired)
        changes = diff_fields(desired.fields, observed.fields)
        if not changes:
            return observed
        request = harness.provider.requests.update(desired, observed, changes)[0]
        _finish(harness, harness.cloud.send(request))
    pytest.fail(f"{desired.target.name} still differs after {CALLS} calls")


def _sent(harness: Harness, request: Request) -> Conflict | None:
    """Send and wait; return the conflict, or None."""
    try:
        _finish(harness, harness.cloud.send(request))
    except Conflict as error:
        return error
    return None


def _without(fields: Mapping[FieldPath, object], left_out: AbstractSet[FieldPath]) -> dict[FieldPath, object]:
    return {path: value for path, value in fields.items() if path not in left_out}


def _doubled(nodes: Nodes) -> Nodes:
    return replace(nodes, count=nodes.count * 2, minimum=nodes.minimum * 2, maximum=nodes.maximum * 2)


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
    pytest.fail(f"{operation} is not done after {LOOKS} polls")


def _find(harness: Harness, desired: Desired) -> Observed:
    (found,) = [o for o in harness.cloud.pools() if o.name == desired.target.name]
    return found


def _converge(harness: Harness, desired: Desired) -> None:
    """Do what the engine does: read, send what is missing, wait; repeat after a failed call."""
    for _ in range(3):
        plan = plan_pool(harness.provider, desired, harness.cloud.pools())
        try:
            for request in plan.requests:
                _finish(harness, harness.cloud.send(request))
        except GpukubeError:
            harness.pause()
    _finish(harness, Operation(desired.target.name, "create"))
