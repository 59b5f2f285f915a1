"""What people write who come from another tool, and what they are told to write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.spec.reference.fields import places_in_pool
from gpukube.spec.reference.other_words import OTHER_WORDS, field_for
from tests.unit.spec.samples import problems_of, spec_of

if TYPE_CHECKING:
    from pathlib import Path

NODES = "nodes: {count: 1}, "

TOLD = {
    "eksctl's least": ("nodes: {minSize: 0, maxSize: 2}", ["nodes.autoscaling.min", "nodes.autoscaling.max"]),
    "eksctl's count beside nodes": (NODES + "desiredCapacity: 2", ["nodes.count"]),
    "eksctl's disk": (NODES + "volumeSize: 200", ["disk.sizeGiB"]),
    "the EKS API's image": (NODES + "amiType: AL2023_x86_64_NVIDIA", ["image"]),
    "Terraform's spelling": (NODES + "capacity_type: SPOT", ["capacity.type"]),
    "Terraform's scaling": (NODES + "scaling_config: {min_size: 1}", ["nodes"]),
    "the AKS API's machine": (NODES + "vmSize: Standard_NC4as_T4_v3", ["instanceType"]),
    "az's switch": (NODES + "enable-cluster-autoscaler: true", ["nodes.autoscaling"]),
    "az's MIG": (NODES + "gpuInstanceProfile: MIG1g", ["sharing.mig.profile"]),
    "MIG of GKE below sharing": (NODES + "sharing: {gpuPartitionSize: 1g.5gb}", ["sharing.mig.profile"]),
    "gcloud's pods": (NODES + "maxPods: 32", ["maxPodsPerNode"]),
    "the GKE API's labels": (NODES + "resourceLabels: {team: ml}", ["tags"]),
    "a word in talk": (NODES + "scaling: {min: 0, max: 2}", ["nodes.autoscaling"]),
}


def fixes(folder: Path, wrong: str) -> list[str]:
    pool = f"  - {{name: a, clusters: [train-aks], gpu: {{model: T4-16GB, count: 1}}, {wrong}}}\n"
    return [found.fix for found in problems_of(folder, spec_of(pool)) if found.code == "unknown-key"]


@pytest.mark.parametrize(("wrong", "fields"), TOLD.values(), ids=TOLD)
def test_word_of_another_tool_when_written_then_told_our_field(wrong: str, fields: list[str], tmp_path: Path) -> None:
    assert fixes(tmp_path, wrong) == [f"did you mean {field}?" for field in fields]


def test_word_of_another_tool_when_in_a_mapping_that_has_no_such_field_then_it_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    assert fixes(tmp_path, "nodes: {count: 1}, disk: {sizeGiB: 100, maxSize: 200}") == [
        "remove it; keys here: sizeGiB, kmsKey, type, iops, encrypted, throughput"
    ]


def test_word_of_a_cluster_when_in_a_pool_then_told_where_it_belongs(tmp_path: Path) -> None:
    assert fixes(tmp_path, NODES + "region: us-east-1") == ["move it to the cluster, under clusters"]


def test_rows_when_read_then_each_names_a_field_of_the_pool_and_no_word_is_a_field_or_stands_twice() -> None:
    fields = {place for places in places_in_pool().values() for place in places}
    words = [word for words in OTHER_WORDS.values() for word in words]
    assert set(OTHER_WORDS) <= fields
    assert len({word.casefold() for word in words}) == len(words)
    assert not set(words) & set(places_in_pool())
    assert all(field_for(word, "") == field for field, words in OTHER_WORDS.items() for word in words)
