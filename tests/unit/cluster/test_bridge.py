"""Whether a cluster keeps the extended resource of a DeviceClass; tests/surge asks emulated ones of two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.cluster.state.bridge import keeps_extended_names
from gpukube.errors import AccessError, ClusterError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree


class Answering:
    """A cluster that stores what it is given, without the fields of gates that are off."""

    def __init__(self, *, dropped: bool = False, error: Exception | None = None) -> None:
        self.dropped, self.error = dropped, error

    def would_store(self, kind: ApiType, obj: Tree) -> Mapping[str, object]:
        assert kind.kind == "DeviceClass"
        if self.error:
            raise self.error
        return {**obj, "spec": {}} if self.dropped else obj


@pytest.mark.parametrize(
    ("cluster", "kept"),
    [
        (Answering(), True),
        (Answering(dropped=True), False),
        (Answering(error=AccessError("may not create deviceclasses", where=Where("train"))), False),
        (Answering(error=ClusterError("no such type", where=Where("train"))), False),
    ],
)
def test_bridge_when_asked_then_only_a_kept_name_counts(cluster: Answering, *, kept: bool) -> None:
    assert keeps_extended_names(cast("Kube", cluster)) is kept
