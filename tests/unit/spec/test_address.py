"""Clusters named in one word."""

from __future__ import annotations

import pytest

from gpukube.errors import SpecError
from gpukube.spec.address import ADDRESS_FORMS, is_address, parse_addresses

EKS = "eks:111122223333/us-east-1/train"
AKS = "aks:11111111-2222-3333-4444-555555555555/ml/train"
GKE = "gke:ml-prod/us-central1/train"


def test_address_when_right_then_the_cluster_as_a_spec_would_have_it() -> None:
    cluster = parse_addresses([EKS])["train"]
    assert cluster.model_dump(exclude_none=True) == {
        "provider": "eks", "account": "111122223333", "region": "us-east-1", "name": "train",
    }  # fmt: skip


KEYS: dict[str, tuple[list[str], list[str]]] = {
    "alone": ([GKE], ["train"]),
    "same name on several clouds": ([EKS, AKS, GKE], ["eks:train", "aks:train", "gke:train"]),
    "same name twice on a cloud": ([GKE, "gke:ml-prod/europe-west4/train"], [GKE, "gke:ml-prod/europe-west4/train"]),
    "other names": ([GKE, "gke:ml-prod/us-central1/serve"], ["train", "serve"]),
    "given twice": ([GKE, GKE], ["train"]),
    "given twice, in another case": ([AKS, GKE, AKS.replace("/ml/", "/ML/")], ["aks:train", "gke:train"]),
    "names that differ by case": ([EKS, EKS.replace("/train", "/Train")], ["train", "Train"]),
}


@pytest.mark.parametrize("case", KEYS)
def test_address_when_names_repeat_then_keys_stay_apart(case: str) -> None:
    texts, keys = KEYS[case]
    assert list(parse_addresses(texts)) == keys


WRONG: dict[str, tuple[str, str]] = {
    "no provider": ("111122223333/us-east-1/train", "is not a cluster address"),
    "unknown provider": ("oke:a/b/c", "is not a cluster address"),
    "too few parts": ("eks:111122223333/train", "is not a cluster address"),
    "no account": ("eks:1234/us-east-1/train", "'1234' is not a valid account"),
    "no subscription": ("aks:ml/ml/train", "'ml' is not a valid subscription"),
    "empty name": ("gke:ml-prod/us-central1/", "'' is not a valid name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_address_when_wrong_then_said_with_its_form(case: str) -> None:
    text, message = WRONG[case]
    with pytest.raises(SpecError) as caught:
        parse_addresses([text, GKE])
    (found,) = caught.value.diagnostics
    assert (found.code, message in found.seen, found.fix.startswith("write ")) == ("address", True, True)


def test_address_when_told_from_a_glob_then_by_its_colon() -> None:
    assert all(is_address(form) for form in ADDRESS_FORMS)
    assert not is_address("train-*")
