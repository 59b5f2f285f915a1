"""Mends are guarded: what somebody has changed meanwhile is left alone, and a contended object is given up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.core.faults import LabelNode, Restart
from gpukube.core.values import Settings
from gpukube.doctor.fixing import apply_fixes
from gpukube.engine.plan.prepare import prepare_addresses
from gpukube.engine.run.context import Run
from gpukube.engine.run.session import Session
from gpukube.errors import ClusterError
from gpukube.testing.clock import ManualClock
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.faults import SafeFix
    from gpukube.core.jsontree import Tree

NODE = {"metadata": {"name": "gpu-1", "labels": {"team": "vision"}}}
BARE = {"metadata": {"name": "plugin"}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}
STAMPED = {"metadata": {"name": "plugin"}, "spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}
PATH = "/spec/template/metadata/annotations"
MARK = "gpukube.io/restarted-at"


@dataclass
class OneObject:
    """The part of Kube that mends use, over one object; loses the first races."""

    server: str = "https://cluster"
    live: Tree | None = None
    races: int = 0
    sent: list[Tree] = field(default_factory=list)

    def find_object(self, _kind: ApiType, _name: str, _namespace: str = "") -> Tree | None:
        return self.live

    def change_object(self, _kind: ApiType, _live: Tree, operations: list[Tree]) -> bool:
        self.races -= 1
        if self.races >= 0:
            return False
        self.sent += operations
        return True


def fixed(kube: OneObject, desired: SafeFix) -> tuple[str, ...]:
    provider, settings = FakeProvider(), Settings()
    session = Session(CLUSTER, provider, provider.connect(CLUSTER, settings), settings, _kube=cast("Kube", kube))
    run = Run(settings, ChartSource(), {}, resume="", clock=ManualClock())
    return apply_fixes([desired], session, prepare_addresses([]), run)


CHANGES: dict[str, tuple[Tree | None, SafeFix, list[Tree]]] = {
    "label changed": (
        NODE,
        LabelNode("gpu-1", "team", "vision", "speech"),
        [{"op": "add", "path": "/metadata/labels/team", "value": "speech"}],
    ),
    "label put back": (
        NODE,
        LabelNode("gpu-1", "gpukube.io/pool", None, "a"),
        [{"op": "add", "path": "/metadata/labels/gpukube.io~1pool", "value": "a"}],
    ),
    "label taken off": (
        NODE,
        LabelNode("gpu-1", "team", "vision", None),
        [{"op": "remove", "path": "/metadata/labels/team"}],
    ),
    "label changed by somebody else": (NODE, LabelNode("gpu-1", "team", "other", "speech"), []),
    "node gone": (None, LabelNode("gpu-1", "team", None, "speech"), []),
    "first restart": (BARE, Restart("ns", "plugin"), [{"op": "add", "path": PATH, "value": {MARK: "0"}}]),
    "another restart": (
        STAMPED,
        Restart("ns", "plugin"),
        [{"op": "add", "path": f"{PATH}/gpukube.io~1restarted-at", "value": "0"}],
    ),
    "DaemonSet gone": (None, Restart("ns", "plugin"), []),
}


@pytest.mark.parametrize("name", CHANGES)
def test_mend_when_asked_for_then_exactly_this_is_written_and_said(name: str) -> None:
    live, desired, operations = CHANGES[name]
    kube = OneObject(live=live)
    said = fixed(kube, desired)
    assert (kube.sent, said) == (operations, (str(desired),) if operations else ())


@pytest.mark.parametrize("desired", [LabelNode("gpu-1", "team", "vision", "x"), Restart("ns", "plugin")], ids=str)
def test_mend_when_others_write_too_then_tried_again_and_given_up_in_the_end(desired: SafeFix) -> None:
    live = NODE if isinstance(desired, LabelNode) else BARE
    once = OneObject(live=live, races=1)
    assert fixed(once, desired) == (str(desired),)
    with pytest.raises(ClusterError, match="changed during each attempt"):
        fixed(OneObject(live=live, races=99), desired)
