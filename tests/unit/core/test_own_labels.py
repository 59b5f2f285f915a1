"""Labels of NVIDIA's in a spec: gpukube's where it runs what reads them, the user's elsewhere."""

from __future__ import annotations

import pytest

from gpukube.core.owners import CONFIG_LABEL, MIG_CONFIG_LABEL, PRESENT_LABEL, check_own_labels
from gpukube.core.values import Advertiser, Ownership
from tests.builders import make_target

LABELS = {CONFIG_LABEL: "c-1", PRESENT_LABEL: "true", MIG_CONFIG_LABEL: "all-1g.5gb"}


def severities(advertiser: Advertiser, written: dict[str, str], sets: dict[str, str]) -> dict[str, str]:
    ownership = Ownership("cloud", advertiser, "", sets, "test")
    found = check_own_labels(make_target(labels=written), ownership)
    return {key: one.severity for one in found for key in LABELS if f'"{key}"' in one.seen}


@pytest.mark.parametrize("advertiser", ["none", "cloud"])
def test_labels_when_gpukube_runs_nothing_that_reads_them_are_the_users(advertiser: Advertiser) -> None:
    assert severities(advertiser, LABELS, {}) == {}


@pytest.mark.parametrize("advertiser", ["chart", "operator", "dra"])
def test_labels_when_gpukube_runs_their_reader_are_refused_unless_they_are_the_same(advertiser: Advertiser) -> None:
    sets = {CONFIG_LABEL: "c-1", PRESENT_LABEL: "true"}

    assert severities(advertiser, LABELS, sets) == {
        CONFIG_LABEL: "hint",
        PRESENT_LABEL: "hint",
        MIG_CONFIG_LABEL: "error",
    }
    assert severities(advertiser, {CONFIG_LABEL: "mine", PRESENT_LABEL: "false", "team": "a"}, sets) == {
        CONFIG_LABEL: "error",
        PRESENT_LABEL: "error",
    }
