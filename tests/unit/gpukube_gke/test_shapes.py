"""Every field of the SDK's own messages is classified: nothing that Google adds goes unnoticed.

A new field fails here, first on the newest release of the SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from google.cloud import container_v1 as wire

from gpukube.core.fields import FieldPath
from gpukube.core.values import Nodes
from gpukube_gke.pool.members import MEMBERS
from gpukube_gke.pool.native import NATIVE, native_path
from gpukube_gke.pool.updates import INTENT_ROWS, NATIVE_ROWS, find_row
from tests.unit.gpukube_gke.edits import EDITS, changes_of, live_of
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire

if TYPE_CHECKING:
    from collections.abc import Iterator

KNOWN = {path.removesuffix(".*") for path in MEMBERS}
REQUESTS = {
    "update_node_pool": wire.UpdateNodePoolRequest,
    "set_node_pool_size": wire.SetNodePoolSizeRequest,
    "set_node_pool_autoscaling": wire.SetNodePoolAutoscalingRequest,
    "set_node_pool_management": wire.SetNodePoolManagementRequest,
}
OURS = {"etag"}
"""Parameters of a request that its message need not have: the live half compares it."""

OLD = "deprecated: the name says it"
NO_ROW = "no field of a spec leads to it"
REPLACED = "what it does to living nodes is not documented; the pool is replaced"
UNUSED = {
    "UpdateNodePoolRequest": {
        **dict.fromkeys(("projectId", "zone", "clusterId", "nodePoolId"), OLD),
        **dict.fromkeys(("queuedProvisioning", "maxRunDuration", "flexStart"), REPLACED),
        **dict.fromkeys(
            (
                "image",
                "imageProject",
                "windowsNodeConfig",
            ),
            NO_ROW,
        ),
        "confidentialNodes": "the type of confidential machines is set at creation only",
    },
    "SetNodePoolSizeRequest": dict.fromkeys(("projectId", "zone", "clusterId", "nodePoolId"), OLD),
    "SetNodePoolAutoscalingRequest": dict.fromkeys(("projectId", "zone", "clusterId", "nodePoolId"), OLD),
    "SetNodePoolManagementRequest": dict.fromkeys(("projectId", "zone", "clusterId", "nodePoolId"), OLD),
}
"""Request of an update -> its fields that gpukube never sends -> why; every other one it sends."""


def descriptor(message: object) -> Any:  # noqa: ANN401 - protobuf ships no types
    return cast("Any", message).pb(cast("Any", message)()).DESCRIPTOR


def unclassified(of: Any, prefix: str = "") -> Iterator[str]:  # noqa: ANN401 - protobuf ships no types
    """Go down into messages of which parts are known."""
    for field in of.fields:
        path = f"{prefix}{field.json_name}"
        if path in KNOWN:
            continue
        if field.message_type and any(name.startswith(f"{path}.") for name in KNOWN):
            yield from unclassified(field.message_type, f"{path}.")
        else:
            yield path


def test_node_pool_when_the_sdk_has_a_field_it_is_in_one_of_the_tables() -> None:
    found = list(unclassified(descriptor(wire.NodePool)))

    assert not found, (
        f"google.container.v1 NodePool has fields that gpukube does not know: {', '.join(found)}. Put each into "
        "the table MEMBERS in gpukube_gke/pool/members.py: a field of the spec, a native field with its effect and an "
        "edit in tests/unit/gpukube_gke/edits.py, made by GKE, or unsupported with the reason"
    )


def test_tables_when_compared_with_the_sdk_hold_only_what_it_has() -> None:
    def has(path: str) -> bool:
        of = descriptor(wire.NodePool)
        for name in path.split("."):
            if of and of.GetOptions().map_entry:
                return True  # a key of a map
            found = [field for field in of.fields if field.json_name == name] if of else []
            if not found:
                return False
            of = found[0].message_type
        return True

    unknown = [path for path in KNOWN if not has(path)]
    assert unknown == [], f"the SDK has no such fields; remove them from MEMBERS in pool/members.py: {unknown}"


def sent() -> dict[str, set[str]]:
    """Every parameter of every call that any edit leads to."""
    found: dict[str, set[str]] = {name: set() for name in REQUESTS}
    for edit in EDITS.values():
        if edit.kind in ("in-place", "disruptive"):
            live, edited = live_of(edit.base), desire(edit.target)
            for request in PROVIDER.requests.update(edited, live, changes_of(edit)):
                found[request.operation] |= request.params.keys()
    return found


@pytest.mark.parametrize("operation", REQUESTS)
def test_request_when_the_sdk_has_a_field_it_is_sent_or_listed(operation: str) -> None:
    kind = REQUESTS[operation]
    names = {field.json_name for field in descriptor(kind).fields}
    unused, used = UNUSED[kind.__name__].keys(), sent()[operation] - (OURS - names)

    assert used <= names
    assert not used & unused, "listed as unused, and sent"
    assert unused <= names, "listed, and not a field of the request"
    left = names - used - unused
    assert not left, (
        f"google.container.v1 {kind.__name__} has fields that gpukube does not know: {', '.join(sorted(left))}. Send "
        "them in change.py for a field with a row, or list them in UNUSED with the reason"
    )


@pytest.mark.parametrize("path", NATIVE)
def test_escape_hatch_when_it_takes_a_field_the_field_has_a_row(path: str) -> None:
    assert {native_path(path), native_path(f"{path}.*")} & NATIVE_ROWS.keys()


def test_edits_when_compared_with_the_rows_cover_every_one() -> None:
    covered = {FieldPath.parse(edit.row) for edit in EDITS.values()}

    missing = (INTENT_ROWS.keys() | NATIVE_ROWS.keys()) - covered
    assert missing == set(), f"add an edit for these rows to EDITS in tests/unit/gpukube_gke/edits.py: {missing}"


@pytest.mark.parametrize("name", EDITS)
def test_edit_when_compared_is_one_change_of_the_class_of_its_row(name: str) -> None:
    edit = EDITS[name]
    changes = changes_of(edit)

    assert [str(change.field) for change in changes] == [edit.field]
    assert find_row(changes[0]).kind == edit.kind


def test_scale_when_asked_sends_numbers_per_zone() -> None:
    live = live_of(EDITS["nodes.count"].base)
    request = PROVIDER.requests.scale(CLUSTER, live, Nodes(4, 4, 4, autoscaled=False))

    assert (request.operation, request.params["nodeCount"]) == ("set_node_pool_size", 4)
