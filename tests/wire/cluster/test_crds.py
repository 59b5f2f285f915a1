"""CRDs of a chart, which gpukube creates before Helm: by several runs at once, too."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.release.crds import CRDS, Types, create_types, look_at_types
from gpukube.errors import ClusterError
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.cluster.kube.client import LightKube
    from tests.wire.cluster.conftest import Live

NAME = "shares.example.com"
TYPE: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Share", "listKind": "ShareList", "plural": "shares", "singular": "share"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def preceded(by: Callable[[], object], kube: LightKube, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something happen between this run's look at a type and its creation."""
    create = kube.create_object

    def then_create(*told: Any) -> object:  # noqa: ANN401 - passed on
        by()
        return create(*told)

    monkeypatch.setattr(kube, "create_object", then_create)


def test_create_when_another_run_creates_the_type_meanwhile_then_it_is_used(
    live: Live, kube: LightKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = look_at_types(kube, (TYPE,))
    assert types == Types(missing=(TYPE,), other=())
    other = connect_kube(live.access(), PATIENCE_S)
    preceded(lambda: create_types(other, types, time.sleep), kube, monkeypatch)
    create_types(kube, types, time.sleep)
    other.close()
    assert kube.find_object(CRDS, NAME) is not None
    assert look_at_types(kube, (TYPE,)) == Types(missing=(), other=())


def test_create_when_the_api_fails_and_there_is_no_type_then_the_failure_is_told(
    kube: LightKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ClusterError("the API answered nothing", where="here")

    preceded(fail, kube, monkeypatch)
    with pytest.raises(ClusterError, match="answered nothing"):
        create_types(kube, look_at_types(kube, (TYPE,)), time.sleep)
