"""One run reports all mistakes that can be known: what is wrong in one place hides nothing of the rest."""

from __future__ import annotations

import copy
import random
import re
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
import yaml

from gpukube import api
from tools.message_cases import message_cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CLUSTERS: Final[Mapping[str, Mapping[str, str]]] = {
    "eks": {"provider": "eks", "account": "111122223333", "region": "us-east-1", "name": "train"},
    "aks": {
        "provider": "aks",
        "subscription": "11111111-2222-3333-4444-555555555555",
        "resourceGroup": "ml",
        "name": "train",
    },
    "gke": {"provider": "gke", "project": "ml-prod", "location": "us-central1", "name": "train"},
}
MACHINES: Final = {"eks": "p4d.24xlarge", "aks": "Standard_ND96asr_v4", "gke": "a2-highgpu-8g"}


class Mistake(NamedTuple):
    """Fields of a pool that are wrong by themselves, whatever the others are."""

    code: str
    fields: Mapping[str, object]


ANYWHERE: Final = (
    Mistake("unknown-key", {"bogus": 1}),
    Mistake("type", {"deletionProtection": "yes"}),
    Mistake("range", {"maxPodsPerNode": 0}),
    Mistake("format", {"kubernetesVersion": "latest"}),
    Mistake("choice", {"driver": {"owner": "me"}}),
    Mistake("unknown-cluster", {"clusters": ["train", "tarin"]}),
    Mistake("autoscaling-range", {"nodes": {"autoscaling": {"min": 5, "max": 1}}}),
    Mistake("nodes-choice", {"nodes": {}}),
    Mistake("max-price", {"capacity": {"maxPrice": 2}}),
    Mistake("upgrade-range", {"upgrade": {"maxSurge": 0, "maxUnavailable": 0}}),
    Mistake("label-syntax", {"labels": {"a b": "x"}}),
    Mistake("taint-syntax", {"taints": [{"key": "a b", "value": "x", "effect": "NoSchedule"}]}),
    Mistake("choice", {"taints": [{"key": "a", "value": "x", "effect": "Never"}]}),
    Mistake("mig-choice", {"sharing": {"mig": {"strategy": "mixed"}}}),
    Mistake("sharing-choice", {"sharing": {"timeSlicing": {"replicas": 2}, "mps": {"replicas": 2}}}),
    # which profiles there are depends on the GPU
    Mistake(
        "mig-profile",
        {"instanceType": None, "gpu": {"model": "A100-40GB", "count": 8}, "sharing": {"mig": {"profile": "9g.99gb"}}},
    ),
    Mistake("gpu-model", {"gpu": {"model": "A100", "count": 8}, "instanceType": None}),
    Mistake("instance-type", {"instanceType": "nosuch.type"}),
)
OF_CLOUD: Final[Mapping[str, tuple[Mistake, ...]]] = {
    "eks": (
        Mistake("eks-zone", {"zones": ["us-west-2a"]}),
        Mistake("eks-image", {"image": "Windows"}),
        Mistake("eks-disk-size", {"disk": {"sizeGiB": 5}}),
        Mistake("eks-tag", {"tags": {"aws:x": "y"}}),
        Mistake("eks-native-unknown", {"eks": {"bogus": 1}}),
    ),
    "aks": (
        Mistake("aks-zone", {"zones": ["9"]}),
        Mistake("aks-image", {"image": "Windows2022"}),
        Mistake("aks-disk-size", {"disk": {"sizeGiB": 5}}),
        Mistake("aks-tag-limit", {"tags": {"a?b": "y"}}),
        Mistake("aks-native-unknown", {"aks": {"bogus": 1}}),
    ),
    "gke": (
        Mistake("gke-zone", {"zones": ["europe-west4-a"]}),
        Mistake("gke-image", {"image": "WINDOWS"}),
        Mistake("gke-disk-size", {"disk": {"sizeGiB": 5}}),
        Mistake("gke-tag", {"tags": {"UPPER": "y"}}),
        Mistake("gke-native-unknown", {"gke": {"bogus": 1}}),
    ),
}


def codes_of(document: object, folder: Path) -> set[str]:
    file = folder / "spec.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    found = api.validate([str(file)], environ={}).findings
    assert len({(one.code, one.where, one.seen) for one in found}) == len(found)
    return {one.code for one in found if one.severity == "error"}


def spec_of(cloud: str, mistakes: Sequence[Mistake]) -> object:
    pool: dict[str, object] = {
        "name": "pool",
        "clusters": ["train"],
        "instanceType": MACHINES[cloud],
        "nodes": {"count": 1},
    }
    for mistake in mistakes:
        pool.update(copy.deepcopy(dict(mistake.fields)))
    return {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "ml"},
        "clusters": {"train": dict(CLUSTERS[cloud])},
        "pools": [{key: value for key, value in pool.items() if value is not None}],
    }


def chosen(cloud: str, seed: int) -> list[Mistake]:
    """Choose mistakes of different fields."""
    mistakes = [*ANYWHERE, *OF_CLOUD[cloud]]
    random.Random(seed).shuffle(mistakes)  # noqa: S311 - the same mistakes in every run
    found: list[Mistake] = []
    for mistake in mistakes:
        if not any(mistake.fields.keys() & other.fields.keys() for other in found):
            found.append(mistake)
    return found[: 2 + seed % 6] + [one for one in found[2 + seed % 6 :] if one in OF_CLOUD[cloud]]


@pytest.mark.parametrize("cloud", CLUSTERS)
def test_mistake_when_alone_then_is_the_only_one(cloud: str, tmp_path: Path) -> None:
    found = [(mistake.code, codes_of(spec_of(cloud, [mistake]), tmp_path)) for mistake in (*ANYWHERE, *OF_CLOUD[cloud])]
    assert [(code, codes) for code, codes in found if codes != {code}] == []


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cloud", CLUSTERS)
def test_mistakes_of_one_pool_when_made_together_then_all_are_reported(cloud: str, seed: int, tmp_path: Path) -> None:
    mistakes = chosen(cloud, seed)
    assert codes_of(spec_of(cloud, mistakes), tmp_path) == {mistake.code for mistake in mistakes}


@pytest.mark.parametrize("cloud", CLUSTERS)
def test_mistakes_when_the_cluster_has_one_too_then_all_are_reported(cloud: str, tmp_path: Path) -> None:
    document = spec_of(cloud, [Mistake("", {"image": "nosuch", "disk": {"sizeGiB": 5}})])
    assert isinstance(document, dict)
    document["clusters"]["train"].pop("name")
    document["clusters"]["train"]["bogus"] = 1
    expected = {"missing-key", "unknown-key", f"{cloud}-image", f"{cloud}-disk-size"}
    assert codes_of(document, tmp_path) == expected


EXAMPLES: Final = tuple(
    case
    for case in message_cases()
    if "bad.yaml" in case.files
    and not case.more.get("bad")
    and re.search(r"GPK(1[2-4]|[2-6])\d.*", case.said)
    and not re.search(r"GPK(10\d|11[0-6]|137|143|305|320)", case.said)
)


@pytest.mark.parametrize("seed", range(8))
def test_bad_examples_when_put_into_one_spec_then_all_of_it_is_reported(seed: int, tmp_path: Path) -> None:
    picked = random.Random(seed).sample(EXAMPLES, 8)  # noqa: S311 - the same examples in every run
    union: dict[str, object] = {"apiVersion": "gpukube.io/v1alpha1", "kind": "GPUNodePools", "metadata": {"name": "ml"}}
    clusters: dict[str, object] = {}
    pools: list[object] = []
    expected: set[str] = set()
    for number, case in enumerate(picked):
        example = yaml.safe_load(case.files["bad.yaml"])
        if not isinstance(example.get("clusters"), dict) or "defaults" in example:
            continue
        named = {key: f"c{number}-{key}" for key in example["clusters"]}
        for key, cluster in example["clusters"].items():
            clusters[named[key]] = {**cluster, "name": f"{cluster.get('name', 'train')}{number}"}
        pools += [
            {**pool, "clusters": [named.get(key, key) for key in pool.get("clusters", [])]} for pool in example["pools"]
        ]
        expected |= set(re.findall(r"error\[GPK\d+ ([\w-]+)\]", case.said))
    assert expected - codes_of({**union, "clusters": clusters, "pools": pools}, tmp_path) == set()
