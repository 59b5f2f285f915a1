"""The second copy of the marks: what fits, what is hashed, and which tags are known again as gpukube's own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.marks import COPY_TAGS, CopyForm
from gpukube.core.values import MarksCopy
from gpukube_aks.pool.marks import FORM as AKS
from gpukube_eks.pool.marks import FORM as EKS
from gpukube_gke.pool.marks import FORM as GKE

FORMS = {"eks": EKS, "aks": AKS, "gke": GKE}
PLACE = "somewhere/train/a100mig"


@pytest.mark.parametrize("cloud", FORMS)
@given(owner=st.from_regex(r"\A[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"), protected=st.booleans())
def test_copy_when_written_then_it_is_read_at_its_own_place_only(cloud: str, owner: str, *, protected: bool) -> None:
    form = FORMS[cloud]
    marks = form.copy_of(owner, "Pool.1", protected=protected)
    tags = form.tags(marks, PLACE, ["cost"])
    assert form.read(tags, PLACE) == marks
    assert form.read(tags, f"{PLACE}2") is None
    assert form.read({key: value for key, value in tags.items() if "place" not in key}, PLACE) is None
    assert all(len(value) <= form.longest and form.value.fullmatch(value) for value in tags.values())
    assert all(form.is_own(key) for key in tags)


def test_value_when_the_cloud_refuses_it_then_a_hash_in_lower_case() -> None:
    assert GKE.encode("ml-platform") == "ml-platform"
    assert EKS.encode("ML.Platform") == "ML.Platform"
    assert re.fullmatch(r"sha256-[0-9a-f]{40}", GKE.encode("ML.Platform"))
    assert GKE.encode("ML.Platform") != GKE.encode("ml.platform")
    forged = GKE.encode("ML.Platform")
    assert GKE.encode(forged) != forged  # an owner who has that name is another one


names = st.lists(st.from_regex(r"\A[a-z][a-z0-9_-]{0,62}\Z"), min_size=1, max_size=45, unique=True)


@pytest.mark.parametrize("cloud", FORMS)
@given(names=names)
def test_record_when_read_then_exactly_the_names_that_were_written(cloud: str, names: list[str]) -> None:
    form, half = FORMS[cloud], len(names) // 2
    ours, theirs = names[half:], names[:half]
    tags = dict.fromkeys(names, "x") | form.tags(MarksCopy("a", "b"), PLACE, ours)
    written = form.written(tags, PLACE)
    assert written == set(ours) or (cloud == "gke" and len(ours) > 11 and written == set())
    assert not written & set(theirs)
    assert form.written(tags, f"{PLACE}2") == set()


@pytest.mark.parametrize("name", ["cost centre", "h05-abcde"])
def test_record_when_a_name_could_be_misread_then_hashed(name: str) -> None:
    assert re.fullmatch(r"h26-[a-z2-7]{26}", EKS.record([name]))
    assert EKS.written({name: "1", **EKS.tags(MarksCopy("a", "b"), PLACE, [name])}, PLACE) == {name}


def test_record_when_there_are_too_many_names_for_the_cloud_then_none() -> None:
    assert GKE.record([f"t{number:02d}-{'x' * 20}" for number in range(12)]) == ""
    assert GKE.record([]) == ""


def test_keys_when_azure_has_them_in_another_case_then_the_same_tags() -> None:
    tags = {key.upper(): value for key, value in AKS.tags(MarksCopy("a", "b"), PLACE, ["Cost"]).items()}
    assert AKS.read(tags, PLACE) == MarksCopy("a", "b")
    assert AKS.written({**tags, "COST": "1", "Other": "2"}, PLACE) == {"COST"}
    assert EKS.read({"GPUKUBE.IO/owner": "a"}, PLACE) is None


def test_outdated_when_compared_then_what_is_missing_another_or_too_much() -> None:
    wanted = EKS.tags(MarksCopy("a", "b"), PLACE, ["cost"])
    assert EKS.outdated({**wanted, "theirs": "1"}, wanted) == ({}, ())
    live = {**wanted, "gpukube.io/owner": "other", "gpukube.io/protect": "true"}
    assert EKS.outdated(live, wanted) == ({"gpukube.io/owner": "a"}, ("gpukube.io/protect",))


def test_keys_when_counted_then_as_many_as_the_limits_of_tags_fall() -> None:
    form = CopyForm("x_", 63, re.compile("[a-z]*"))
    everything = form.tags(MarksCopy("a", "b", protected=True), PLACE, ["cost"])
    assert len(everything) == len(COPY_TAGS)
