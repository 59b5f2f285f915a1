"""The emulated nodes, which read user data by code of their own, do what gpukube has written for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.fields import LOCAL_STORAGE, MAX_PODS, FieldPath
from gpukube_eks.userdata.merging import merged_data
from gpukube_sandbox.eks.userdata import read_setup
from tests.unit.gpukube_eks.test_user_data import SETTINGS
from tests.unit.gpukube_eks.user_data import ROCKET, SCRIPT, decode, encode, mime, ours

if TYPE_CHECKING:
    from collections.abc import Mapping


def kubelet_of(settings: Mapping[FieldPath, object]) -> dict[str, object]:
    """Return the members of KubeletConfiguration that settings have."""
    found = {path.key: value for path, value in settings.items() if path[0] == "kubelet"}
    found |= {"maxPods": settings[MAX_PODS]} if MAX_PODS in settings else {}
    if found.get("cpuCFSQuotaPeriod", "100ms") != "100ms":
        found["featureGates"] = {"CustomCPUCFSQuotaPeriod": True}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


@given(SETTINGS, st.booleans())
def test_node_when_started_has_the_settings_with_or_without_user_data_of_others(
    given_: tuple[bool, dict[FieldPath, object]],
    beside: bool,  # noqa: FBT001 - of hypothesis
) -> None:
    rocket, settings = given_
    theirs = encode(ROCKET if rocket else mime(SCRIPT)) if beside else ""

    setup = read_setup(
        decode(merged_data(theirs, ours(settings), rocket=rocket)), "bottlerocket" if rocket else "al2023"
    )

    assert setup.kubelet == kubelet_of(settings)
    parameters = {path.key: value for path, value in settings.items() if path[0] == "sysctls"}
    assert {key: value for key, value in setup.sysctls.items() if key != "vm.nr_hugepages"} == parameters
    assert setup.hugepages == {path.key: value for path, value in settings.items() if path[0] == "hugepages"}
    assert (setup.raid == "RAID0") == (LOCAL_STORAGE in settings)
