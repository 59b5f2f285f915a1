"""A field is found by every path that people write, and its page says what the models say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.errors import SpecError
from gpukube.spec.model import Pool, PoolSettings
from gpukube.spec.reference.fieldguide import explain_field, field_names
from gpukube.spec.reference.fields import keys_of, places_in_pool

if TYPE_CHECKING:
    from gpukube.spec.reference.fieldguide import FieldPage

WAYS = {
    "pools.sharing.mig.profile": "pools[].sharing.mig.profile",
    "pools[0].sharing.mig.profile": "pools[].sharing.mig.profile",
    "pools[].gpu.model": "pools[].gpu.model",
    "pool.capacity": "pools[].capacity",
    "sharing.mig": "pools[].sharing.mig",
    "defaults.taints": "defaults.taints",
    "default.taints.key": "defaults.taints[].key",
    "taints.effect": "pools[].taints[].effect",
    "SHARING.time_slicing": "pools[].sharing.timeSlicing",
    "sizeGiB": "pools[].disk.sizeGiB",
    "mig.strategy": "pools[].sharing.mig.strategy",
    "clusters.train.region": "clusters.KEY.region",
    "cluster.region": "clusters.KEY.region",
    "roleArn": "clusters.KEY.roleArn",
    'labels["example.com/team"]': "pools[].labels.example.com/team",
    "eks.updateConfig.maxUnavailable": "pools[].eks.updateConfig.maxUnavailable",
    "devicePlugin.values.nfd.enabled": "pools[].devicePlugin.values.nfd.enabled",
    "metadata.name": "metadata.name",
    "": "",
}


@pytest.mark.parametrize(("written", "path"), WAYS.items(), ids=[way or "nothing" for way in WAYS])
def test_field_when_written_as_people_do_then_is_found(written: str, path: str) -> None:
    assert explain_field(written).path == path


WRONG = {
    "nodes.minSize": ('pools[].nodes has no field "minSize"', "did you mean nodes.autoscaling.min?"),
    "replicas": ("2 fields", "pools.sharing.timeSlicing.replicas, pools.sharing.mps.replicas"),
    "colour": ('the spec has no field "colour"', "choose one of"),
    "pools.sharing.migs": ('pools[].sharing has no field "migs"', "did you mean mig?"),
    "gpu.model.name": ('pools[].gpu.model has no field "name"', "use pools.gpu.model: it has no fields"),
    "mig.profil": ('pools[].sharing.mig has no field "profil"', "did you mean profile?"),
    "profil": ('no field "profil"', "did you mean profile?"),
}


@pytest.mark.parametrize(("written", "said"), WRONG.items(), ids=WRONG)
def test_field_when_there_is_none_then_the_nearest_are_named(written: str, said: tuple[str, str]) -> None:
    with pytest.raises(SpecError) as refused:
        explain_field(written)
    (found,) = refused.value.diagnostics
    assert found.code == "no-field"
    assert said[0] in found.seen
    assert said[1] in found.fix


def test_names_when_listed_then_each_is_found_and_none_of_a_pool_is_missing() -> None:
    names = field_names()
    assert [name for name in names if explain_field(name).path.replace("[]", "").replace(".KEY", "") != name] == []
    inside = {place for places in places_in_pool().values() for place in places}
    assert {f"pools.{place}" for place in inside} <= set(names)
    assert {f"pools.{key}" for key in keys_of(Pool)} <= set(names)


def page(name: str) -> FieldPage:
    return explain_field(name)


def test_page_when_made_then_says_what_the_model_says() -> None:
    assert (page("gpu.count").type, page("gpu.count").limits, page("gpu.count").required) == (
        "integer",
        "1 to 64",
        True,
    )
    assert page("nodes.count").limits == "0 or more"
    assert page("maxPrice").limits == "more than 0"
    assert page("clusters.account").limits == "expected twelve digits"
    assert page("capacity.type").choices[:2] == ("on-demand", "spot")
    assert (page("capacity.type").default, page("gpuTaint").default) == ("on-demand", True)
    assert "A100-40GB" in page("gpu.model").known
    assert page("gpu.model").choices == ()
    assert "p4d.24xlarge" in page("instanceType.eks").known
    assert "p4d.24xlarge" not in page("instanceType.aks").known
    assert page("gpu.model").examples == ("A100-40GB",)
    assert page("apiVersion").choices == ("gpukube.io/v1alpha1",)


TYPES = {
    "pools": "[]Object",
    "clusters": "map[string]Object",
    "zones": "[]string",
    "labels": "map[string]string",
    "names": "map[provider]string",
    "instanceType": "map[provider]string | string",
    "upgrade.maxSurge": "integer | string",
    "nodes": "Object",
    "aks": "map[string]any",
    "labels.team": "string",
    "aks.maxPods": "any",
    "taints": "[]Object",
    "capacity.maxPrice": "number",
}


@pytest.mark.parametrize(("name", "kind"), TYPES.items(), ids=TYPES)
def test_type_when_told_then_is_as_yaml_has_it(name: str, kind: str) -> None:
    assert page(name).type == kind


def test_cluster_when_explained_then_tells_which_cloud_has_a_field() -> None:
    fields = {field.path.rpartition(".")[2]: field.providers for field in page("clusters").fields}
    assert fields["provider"] == fields["name"] == fields["kubeconfig"] == ()
    assert (fields["account"], fields["subscription"], fields["project"]) == (("eks",), ("aks",), ("gke",))


def test_requirement_when_defaults_may_complete_it_then_only_the_pool_has_it() -> None:
    assert page("pools.gpu.count").required
    assert not page("defaults.gpu.count").required
    assert page("defaults.taints.key").required, "items of lists are not merged"
    assert {field.path.rpartition(".")[2] for field in page("defaults").fields} == set(keys_of(PoolSettings))
