"""Slices, classes, claims and templates, sent to a real API server and to the emulated one: the same answers."""

from __future__ import annotations

import itertools
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml

from sandbox_tests.kube.side_by_side.test_side_by_side import merged
from sandbox_tests.kube.test_real_api import Emulated, pytestmark, real

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

__all__ = ["pytestmark", "real"]

CASES: Final = yaml.safe_load((Path(__file__).parent / "devices.yaml").read_text("utf-8"))
GROUPS: Final = {name: part for name, part in CASES.items() if name != "expressions"}
RUNS: Final = itertools.count(1)
"""Names are new in each run: a second run on the same server must not meet the objects of the first."""
_INVENTED: Final = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "name")


@pytest.fixture(scope="module")
def emulated() -> Emulated:
    return Emulated()


def comparable(answer: httpx.Response) -> Any:  # noqa: ANN401 -- any JSON value
    """What both must say: of an object all but what a server makes up; of a refusal its fields and reasons."""
    body = answer.json()
    if answer.status_code >= 400:
        causes = (body.get("details") or {}).get("causes") or [{"field": "", "reason": body.get("reason")}]
        return answer.status_code, sorted({(cause["field"], cause["reason"]) for cause in causes})
    body["metadata"] = {key: value for key, value in body["metadata"].items() if key not in _INVENTED}
    return answer.status_code, without_nothing(body)


def without_nothing(value: Any) -> Any:  # noqa: ANN401 -- any JSON value
    """Take away fields of nothing, which Go writes for structs."""
    if not isinstance(value, dict):
        return [without_nothing(item) for item in value] if isinstance(value, list) else value
    tidy = {key: without_nothing(item) for key, item in value.items()}
    return {key: item for key, item in tidy.items() if item not in ({}, None)}


def named(part: dict[str, Any], change: dict[str, Any], name: str) -> dict[str, Any]:
    whole: dict[str, Any] = merged(deepcopy(part["object"]), change)
    whole["metadata"] = {**(whole.get("metadata") or {}), "name": name}
    return whole


def answers(real: httpx.Client, emulated: Emulated) -> Iterator[tuple[str, httpx.Response, httpx.Response]]:
    """Yield each case with the answer of both."""

    def both(name: str, method: str, path: str, **more: Any) -> tuple[str, httpx.Response, httpx.Response]:  # noqa: ANN401
        return name, real.request(method, path, **more), emulated.request(method, path, **more)

    number = next(RUNS) * 1000
    for group, part in GROUPS.items():
        for case, change in part["cases"].items():
            number += 1
            yield both(f"{group}: {case}", "POST", part["path"], json=named(part, change, f"x{number}"))
        for key, what, below in (("updates", "update of", ""), ("statuses", "status", "/status")):
            for case, change in part.get(key, {}).items():
                number += 1
                yield both(f"{group}: before {case}", "POST", part["path"], json=named(part, {}, f"x{number}"))
                headers = {"content-type": "application/merge-patch+json"}
                path = f"{part['path']}/x{number}{below}"
                yield both(f"{group}: {what} {case}", "PATCH", path, json=change, headers=headers)
    classes = GROUPS["classes"]
    for expression in CASES["expressions"]:
        number += 1
        change = {"spec": {"selectors": [{"cel": {"expression": expression}}]}}
        yield both(f"expression {expression}", "POST", classes["path"], json=named(classes, change, f"x{number}"))


def test_objects_when_sent_to_both_then_the_same_is_stored_and_refused(real: httpx.Client, emulated: Emulated) -> None:
    for server in (real, emulated):
        server.request("POST", "/api/v1/namespaces", json={"metadata": {"name": "default"}})

    found = {name: (comparable(theirs), comparable(ours)) for name, theirs, ours in answers(real, emulated)}

    different = {name: pair for name, pair in found.items() if pair[0] != pair[1]}
    assert not different, "\n".join(f"{name}\n  {theirs}\n  {ours}" for name, (theirs, ours) in different.items())
    refused = sum(theirs[0] >= 400 for theirs, _ in found.values())
    assert refused >= len(found) / 3
    assert len(found) >= 200
