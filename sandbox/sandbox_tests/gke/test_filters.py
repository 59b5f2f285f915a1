"""Filters of Compute Engine's lists, as clients send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.gke.filters import parse_filter
from gpukube_sandbox.gke.wire.answers import GoogleError

if TYPE_CHECKING:
    from sandbox_tests.gke.clients import Json

BASE = "https://www.googleapis.com/compute/v1/projects/p/regions"
FIELDS = frozenset({"name", "region", "status", "guestCpus", "deprecated", "isSharedCpu", "accelerators", "labels"})
ITEMS: list[Json] = [
    {"name": "a2", "guestCpus": 12, "status": "UP", "region": f"{BASE}/us-central1", "isSharedCpu": False},
    {"name": "a3", "guestCpus": 208, "status": "UP", "region": f"{BASE}/us-central1", "labels": {"owner": "me"}},
    {
        "name": "g2",
        "guestCpus": 96,
        "status": "DOWN",
        "region": f"{BASE}/europe-west4",
        "accelerators": [{"guestAcceleratorType": "nvidia-l4"}],
    },
]
FOUND = {
    "": "a2 a3 g2",
    "name=a2": "a2",
    'name = "a2"': "a2",
    "name != a2": "a3 g2",
    "name=a*": "a2 a3",
    "guestCpus > 90": "a3 g2",
    "guestCpus>=96 AND guestCpus<208": "g2",
    "guestCpus = 96": "g2",
    "guestCpus > 90 status=UP": "a3",
    "(guestCpus > 90) (status = UP)": "a3",
    "(name = a2) OR (name = g2) AND (status = UP)": "a2",
    "NOT name = a2": "a3 g2",
    "labels.owner:*": "a3",
    "isSharedCpu = false": "a2",
    "accelerators.guestAcceleratorType=nvidia-l4": "g2",
    "region:us-central1": "a2 a3",
    "region eq .*us-central1": "a2 a3",
    r'region eq ".*\bus\-central1\b.*"': "a2 a3",
    r'(region eq ".*\bus\-central1\b.*")(status eq UP)': "a2 a3",
    "(status eq 'UP') (name ne .*2)": "a3",
    "region eq us-central1": "",
    "deprecated.state = DELETED": "",
}
"""Filter -> names of what it finds; those with `eq` and \\b are what gcloud makes of `region:us-central1`."""


@pytest.mark.parametrize("text", FOUND)
def test_filter_when_it_is_one_then_finds_what_it_says(text: str) -> None:
    fits = parse_filter(text, FIELDS)
    assert " ".join(str(item["name"]) for item in ITEMS if fits(item)) == FOUND[text]


@pytest.mark.parametrize(
    "text", ["name", "name =", "name = a)", "(name = a", "colour = red", "guestCpus > many", "= a", "name eq a AND b",
             "(name eq a) OR (name eq b)", "name = AND"],
)  # fmt: skip
def test_filter_when_it_is_none_then_400(text: str) -> None:
    with pytest.raises(GoogleError) as caught:
        parse_filter(text, FIELDS)
    error = caught.value.body()["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["errors"][0]["reason"]) == (400, "invalid")
    assert error["message"] == f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."
