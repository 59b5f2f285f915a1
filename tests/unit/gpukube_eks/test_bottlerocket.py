"""Bottlerocket's settings: written, read again, and what their silence means."""

from __future__ import annotations

import base64
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.fields import MAX_PODS
from gpukube.gpu.models import GpuModel, model_named
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks.userdata.bottlerocket import MIG_MODELS, is_profile, read_fields, sharing_fields
from gpukube_eks.userdata.merging import Ours, new_data
from tests.builders import by_text

A100 = model_named("A100-40GB")


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def user_data(sharing: Sharing, model: GpuModel, max_pods: int | None = None) -> str:
    return new_data(Ours({} if max_pods is None else {MAX_PODS: max_pods}, model, sharing), rocket=True)


def settings_of(sharing: Sharing, model: str = "A100-40GB") -> object:
    document = tomllib.loads(base64.b64decode(user_data(sharing, model_named(model))).decode())
    return document["settings"]["kubelet-device-plugins"]["nvidia"]


def test_user_data_when_whole_gpus_is_empty() -> None:
    assert user_data(Sharing(), A100) == ""


@pytest.mark.parametrize(
    ("model", "key"),
    list(zip(MIG_MODELS, ("a100.40gb", "a100.80gb", "h100.80gb", "h200.141gb"), strict=True)),
)
def test_user_data_when_cut_names_the_gpu_as_bottlerocket_does(model: str, key: str) -> None:
    found = settings_of(Sharing(MigCut("1g.10gb", "single")), model)

    assert found == {"device-partitioning-strategy": "mig", "mig": {"profile": {key: "1g.10gb"}}}


def test_user_data_when_sliced_writes_both_switches_because_their_defaults_are_true() -> None:
    found = settings_of(Sharing(None, Slicing("time-slicing", 4)))

    values = {"replicas": 4, "rename-by-default": False, "fail-requests-greater-than-one": False}
    assert found == {"device-sharing-strategy": "time-slicing", "time-slicing": values}


def test_user_data_when_mps_has_no_request_limit() -> None:
    found = settings_of(Sharing(None, Slicing("mps", 8)))

    assert found == {"device-sharing-strategy": "mps", "mps": {"replicas": 8, "rename-by-default": False}}


def test_settings_when_silent_have_bottlerockets_defaults() -> None:
    text = '[settings.kubelet-device-plugins.nvidia]\ndevice-sharing-strategy = "time-slicing"\n'

    assert by_text(read_fields(encode(text))) == {
        "sharing.timeSlicing.replicas": 2,
        "sharing.timeSlicing.renameByDefault": True,
        "sharing.timeSlicing.failRequestsGreaterThanOne": True,
    }


@pytest.mark.parametrize("text", ["", "#!/bin/sh\necho hello [", "[settings.host]\nname = 'x'\n"])
def test_settings_when_they_say_nothing_of_gpus_are_empty(text: str) -> None:
    assert by_text(read_fields(encode(text))) == {}


def test_settings_when_not_base64_are_empty() -> None:
    assert read_fields("not base64!") == {}


@pytest.mark.parametrize(
    ("profile", "taken"), [("1g.5gb", True), ("7g.141gb", True), ("1g.5gb+me", False), ("4g.96gb+gfx", False)]
)
def test_profile_when_plain_is_taken(profile: str, taken: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_profile(profile) is taken


SLICINGS = st.builds(
    Slicing,
    st.sampled_from(["time-slicing", "mps"]),
    st.integers(2, 48),
    st.one_of(st.none(), st.booleans()),
    st.booleans(),
)
CUTS = st.builds(MigCut, st.sampled_from(["1g.5gb", "3g.20gb"]), st.just("single"))


@given(
    st.builds(Sharing, st.one_of(st.none(), CUTS), st.one_of(st.none(), SLICINGS)),
    st.one_of(st.none(), st.integers(1, 250)),
)
def test_settings_when_read_again_are_what_was_wanted(sharing: Sharing, pods: int | None) -> None:
    said = {} if pods is None else {MAX_PODS: pods}

    assert read_fields(user_data(sharing, A100, pods)) == sharing_fields(sharing) | said


def test_user_data_when_only_pods_are_limited_is_one_table() -> None:
    document = tomllib.loads(base64.b64decode(user_data(Sharing(), A100, 60)).decode())

    assert document == {"settings": {"kubernetes": {"max-pods": 60}}}
