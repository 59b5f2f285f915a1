"""A plain field needs a row and no call of its own: each cloud sends a change of it by its place on the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gpukube_aks.pool.change
import gpukube_eks.pool.change
import gpukube_gke.pool.change
from gpukube.core.binding import Binding, Draft, Effect
from gpukube.core.fields import FieldPath
from gpukube.core.jsontree import at
from gpukube.core.values import Change, Ownership, Promise
from gpukube_aks import AksProvider
from gpukube_aks.pool.observe import observe_pool as observe_aks
from gpukube_eks import EksProvider
from gpukube_eks.pool.observe import observe_group
from gpukube_gke.pool.fields import BINDINGS
from gpukube_gke.pool.observe import observe_pool as observe_gke
from tests.builders import make_target
from tests.unit.gpukube_eks.samples import desired_of, eks_target
from tests.unit.gpukube_gke.targets import PROVIDER, desire, gke_target

if TYPE_CHECKING:
    import pytest

    from gpukube.core.values import Request

FLAG = FieldPath("nodes", "exampleFlag")
CHANGES = (Change(FLAG, old=None, new=True),)
ROW: Binding[Draft, object] = Binding(
    path=FLAG, wire=("config", "exampleFlag"), effect=Effect("in-place", "holds at once", "made up", "update")
)


def flag_of(request: Request, *above: str) -> object:
    return at(request.params, *above, "exampleFlag")


def test_gke_when_a_plain_field_changes_then_a_member_of_its_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpukube_gke.pool.change, "BINDINGS", (*BINDINGS, ROW))
    desired = desire(gke_target())
    (request,) = PROVIDER.update_requests(desired, observe_gke(desired.create.params["nodePool"]), CHANGES)  # type: ignore[arg-type]  # a mapping
    assert (request.operation, flag_of(request)) == ("update_node_pool", True)


def test_aks_when_a_plain_field_changes_then_a_property_of_the_put(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(gpukube_aks.pool.change._WIRE, FLAG, ROW.wire)
    target, provider = make_target(), AksProvider()
    desired = provider.desired(target, Ownership("cloud", "chart", "c", {}, ""), Promise({}, target.nodes))
    live = observe_aks({"name": target.name, "properties": at(desired.create.params, "body", "properties")})
    (request,) = provider.update_requests(desired, live, CHANGES)
    assert flag_of(request, "body", "properties", "config") is True


def test_eks_when_a_plain_field_changes_then_a_member_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        gpukube_eks.pool.change, "_PLAIN", (Binding(path=FLAG, wire=("exampleFlag",), effect=ROW.effect),)
    )
    desired = desired_of(eks_target())
    group = at(desired.create.params, "nodegroup")
    assert isinstance(group, dict)
    (request,) = EksProvider().update_requests(desired, observe_group(group, {}, {}), CHANGES)
    assert (request.operation, flag_of(request, "nodegroup")) == ("update_nodegroup_config", True)
    assert at(request.params, "expects") == {"exampleFlag": None}
