"""Versions of nodes beside that of the control plane; images and their versions are cases of the rules."""

from __future__ import annotations

import pytest

from gpukube_aks.facts.images import check_skew, minor_of
from tests.builders import make_target


@pytest.mark.parametrize(
    ("wanted", "plane"),
    [
        ("", "1.34.2"),
        ("1.34", "1.34.2"),
        ("1.34.2", "1.34.2"),
        ("1.34.1", "1.34.2"),
        ("1.33", "1.34.2"),
        ("1.32.9", "1.34.2"),
        ("1.34", ""),
    ],
)
def test_version_when_it_goes_with_the_control_plane_is_right(wanted: str, plane: str) -> None:
    assert check_skew(make_target(kubernetes_version=wanted), plane) is None


@pytest.mark.parametrize(
    ("wanted", "fix"),
    [
        ("1.35", "upgrade the cluster first"),
        ("1.34.3", "upgrade the cluster first"),
        ("1.34.10", "upgrade the cluster first"),
        ("1.31", "write 1.32 or newer"),
        ("1.31.99", "write 1.32 or newer"),
    ],
)
def test_version_when_above_or_far_below_the_control_plane_is_refused(wanted: str, fix: str) -> None:
    found = check_skew(make_target(kubernetes_version=wanted), "1.34.2")

    assert found is not None
    assert (found.code, str(found.where), found.severity) == ("version-skew", "spec.kubernetesVersion", "error")
    assert found.seen == f"kubernetesVersion is {wanted}, but the control plane of train-aks runs 1.34.2"
    assert found.fix.startswith(fix)


@pytest.mark.parametrize(
    ("version", "minor"),
    [("1.34", 34), ("1.34.2", 34), ("1.9", 9), ("1.34.1-gke.5", None), ("2.1", None), ("1", None), ("", None)],
)
def test_minor_when_read_is_that_of_versions_in_the_form_of_aks(version: str, minor: int | None) -> None:
    assert minor_of(version) == minor
