"""The in-memory provider keeps the contract."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, cast

import pytest

from gpukube.core.fields import label, tag
from gpukube.core.values import Nodes, Settings
from gpukube.errors import AccessError, Busy, CapacityError, CloudError, QuotaError
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.testing.contract import Fault, Harness, ProviderContract
from gpukube.testing.fakes import FakeCloud, FakeProvider, FakeWorld
from tests.builders import CLUSTER, make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Request, Target
    from gpukube.provider import Cloud


@dataclass
class FakeHarness:
    world: FakeWorld = field(default_factory=FakeWorld)
    package: str = "gpukube.testing.fakes"
    sdk: str = "azure"

    def __post_init__(self) -> None:
        self.provider = FakeProvider({CLUSTER.key: self.world})
        self.cloud: Cloud = self.provider.connect(CLUSTER, Settings())

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        plain = make_target(name=f"pool{kind}", pool=f"pool-{kind}")
        return {
            "plain": plain,
            "mig": replace(plain, sharing=Sharing(mig=MigCut("1g.5gb", "single"))),
            "autoscaled": replace(plain, nodes=Nodes(1, 1, 3, autoscaled=True)),
        }[kind]

    def add_foreign_pool(self, name: str) -> None:
        operation = self.cloud.send(_create_like(self, name))
        while not self.cloud.poll(operation).done:
            pass
        self.world.pools[name] = replace(self.world.pools[name], owner="", pool="", copy=None)

    def move_count(self, name: str) -> None:
        self.world.pools[name] = replace(self.world.pools[name], nodes=3)

    def inject(self, fault: Fault, pool: str) -> None:
        if fault == "quota":
            self.world.fail_operation(pool, QuotaError("no more", fix="ask for more"))
            return
        errors = {
            "throttle": CloudError("slow down", fix="wait"),
            "drop-before": CloudError("connection lost", fix="run it again"),
            "drop-after": CloudError("connection lost", fix="run it again"),
            "capacity": CapacityError("none left", fix="another zone"),
            "permission": AccessError("not yours", fix="log in"),
            "busy": Busy("busy", fix="wait"),
        }
        self.world.fail_next(errors[fault], after=fault == "drop-after")

    def edits(self) -> dict[str, Target]:
        plain = self.target("plain")
        return {
            "label": replace(plain, labels={**plain.labels, "tier": "gold"}),
            "taints": replace(plain, taints=()),
            "size": replace(plain, nodes=Nodes(2, 2, 2, autoscaled=False)),
            "several": replace(plain, labels={}, tags={"cost": "1"}, nodes=Nodes(1, 0, 5, autoscaled=True)),
        }

    def replace_labels(self, name: str, labels: Mapping[str, str]) -> None:
        live = self.world.pools[name]
        fields = {path: value for path, value in live.fields.items() if not path.is_below("labels")}
        fields |= {label(key): value for key, value in labels.items()}
        lost = {"owner": "", "pool": "", "protected": live.copy is not None}
        self.world.pools[name] = replace(live, labels=dict(labels), fields=fields, **lost)  # type: ignore[arg-type]  # marks

    def without_copy(self, request: Request) -> Request:
        body = cast("Mapping[str, object]", request.params["body"])
        bare = {key: value for key, value in body.items() if key not in ("copy", "written")}
        return replace(request, params={**request.params, "body": bare})

    def clone(self, name: str, to: str) -> None:
        live = self.world.pools[name]
        self.world.pools[to] = replace(
            live, name=to, owner="", pool="", labels={}, copy=None, copied=True, written=frozenset()
        )

    def add_tag(self, name: str, key: str, value: str) -> None:
        live = self.world.pools[name]
        self.world.pools[name] = replace(live, fields={**live.fields, tag(key): value})

    def touch(self, name: str) -> str:
        live = self.world.pools[name]
        labels = {**live.labels, "touched": live.etag}
        fields = {**live.fields, label("touched"): live.etag}
        self.world.pools[name] = replace(live, labels=labels, fields=fields, etag=str(int(live.etag) + 1))
        return "touched"

    def accepts(self, request: Request) -> bool:
        return isinstance(request.params.get("body") or request.params.get("fields"), dict)

    def pause(self) -> None:
        """Operations here count looks, not time."""


def _create_like(harness: FakeHarness, name: str) -> Request:
    from gpukube.core.owners import solve_ownership  # noqa: PLC0415 - only for this stranger's pool
    from gpukube.core.resolve import promise_of  # noqa: PLC0415
    from gpukube.core.values import Ownership  # noqa: PLC0415

    target = make_target(name=name, pool="theirs", owner="them")
    ownership = solve_ownership(target, harness.provider.stack(target))
    assert isinstance(ownership, Ownership)
    return harness.provider.desired(target, ownership, promise_of(target)).create


class TestFake(ProviderContract):
    @pytest.fixture
    def harness(self) -> Harness:
        return FakeHarness()


if TYPE_CHECKING:
    _harness: Harness = FakeHarness()
    _cloud: Cloud = FakeCloud(FakeWorld())
