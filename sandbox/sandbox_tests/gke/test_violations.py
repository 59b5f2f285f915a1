"""What GKE says of a JSON body that does not fit: text, and the field of each mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.gke.wire.violations import check_fields

if TYPE_CHECKING:
    from sandbox_tests.gke.clients import Json

KIND = wire.CreateNodePoolRequest.pb().DESCRIPTOR


def unknown(name: str, path: str = "") -> str:
    return (
        f'Invalid JSON payload received. Unknown name "{name}"'
        + (f" at '{path}'" if path else "")
        + ": Cannot find field."
    )


EFFECT = "node_pool.config.taints[1].effect"
ENUM = "type.googleapis.com/google.container.v1.NodeTaint.Effect"
WRONG: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "at the root": ({"pool": {}}, [("", unknown("pool"))]),
    "in the config": ({"nodePool": {"config": {"foo": 1}}}, [("node_pool.config", unknown("foo", "node_pool.config"))]),
    "in a list, written in snake case": (
        {"node_pool": {"config": {"accelerators": [{"gpus": 1}]}}},
        [("node_pool.config.accelerators[0]", unknown("gpus", "node_pool.config.accelerators[0]"))],
    ),
    "two at once": (
        {"nodePool": {"size": 1, "config": {"foo": 1}}},
        [("node_pool", unknown("size", "node_pool")), ("node_pool.config", unknown("foo", "node_pool.config"))],
    ),
    "an effect as Kubernetes spells it": (
        {"nodePool": {"config": {"taints": [{"key": "a", "effect": "NO_EXECUTE"}, {"effect": "NoExecute"}]}}},
        [
            (
                EFFECT,
                f"Invalid value at '{EFFECT}' ({ENUM}), \"NoExecute\"",
            )
        ],
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_body_when_it_does_not_fit_then_400_with_every_mistake_and_its_field(
    case: tuple[Json, list[tuple[str, str]]],
) -> None:
    body, wanted = case
    with pytest.raises(GoogleError) as caught:
        check_fields(body, KIND)
    error = caught.value.body()["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["message"] == "\n".join(text for _, text in wanted)
    (details,) = error["details"]
    assert details["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert [(entry.get("field", ""), entry["description"]) for entry in details["fieldViolations"]] == wanted


def test_body_when_it_fits_then_accepted_whatever_a_map_holds() -> None:
    config: Json = {"labels": {"foo": "bar"}, "maxRunDuration": "7s", "accelerators": [{"acceleratorCount": "1"}]}
    check_fields({"nodePool": {"config": config | {"taints": [{"effect": 1}]}, "initialNodeCount": 1}}, KIND)
    with pytest.raises(GoogleError):
        check_fields({"nodePool": {"config": config | {"label": {}}}}, KIND)
