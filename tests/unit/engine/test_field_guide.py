"""What clouds make of a field is told by their own tables, and agrees with what edits of specs bring about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from gpukube.engine.documents.field_guide import field_document
from gpukube.engine.documents.schema import document_schema
from gpukube.engine.plan.fidelity import features_at
from gpukube.provider import FEATURES, load_provider, provider_names
from gpukube.spec.reference.fieldguide import field_names
from tests.changes.edits import EDITS, Edit, class_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Part = Any  # a FieldPart, some keys of which a test looks at


WITHOUT_FEATURE = {
    *provider_names(),
    *("clusters", "devicePlugin", "gpu", "instanceType", "name", "names", "silence"),
    *("alternatives", "maxHourlyPrice", "place"),
}
"""Fields of a pool that every cloud has, or that gpukube alone reads."""


def told(field: str) -> Part:
    return field_document(field, recursive=False)


def effects(field: str) -> set[tuple[str, str, str]]:
    return {(one["provider"], one["direction"], one["kind"]) for one in told(field)["changes"]}


EFFECTS = {
    "sharing.mig.profile": {
        ("aks", "", "replace"),
        ("aks", "", "disruptive"),
        ("eks", "", "disruptive"),
        ("gke", "", "disruptive"),
        ("gke", "", "replace"),
    },
    "sharing.mig.strategy": {("aks", "", "disruptive"), ("eks", "", "disruptive"), ("gke", "", "disruptive")},
    "sharing.mps.replicas": {("aks", "", "disruptive"), ("eks", "", "disruptive"), ("gke", "", "disruptive")},
    "instanceType": {("aks", "", "replace"), ("eks", "", "replace"), ("gke", "", "replace")},
    "gpu.count": {("aks", "", "replace"), ("eks", "", "replace"), ("gke", "", "replace")},
    "labels": {  # NVIDIA's, which stop GPU clients, and all others
        (cloud, "", kind) for cloud in ("aks", "eks", "gke") for kind in ("in-place", "disruptive")
    },
    "labels.team": {(cloud, "", kind) for cloud in ("aks", "eks", "gke") for kind in ("in-place", "disruptive")},
    "tags": {("aks", "", "in-place"), ("eks", "", "in-place"), ("gke", "", "disruptive")},
    "gpuTaint": {("aks", "", "in-place"), ("eks", "", "in-place"), ("gke", "", "in-place")},
    "nodes.count": {
        (c, d, k) for c in ("aks", "eks", "gke") for d, k in (("more", "in-place"), ("fewer", "disruptive"))
    },
    "capacity.maxPrice": {("aks", "", "replace")},
    "capacity.reserved.eks.capacityBlock": {("eks", "", "replace")},
    "driver.owner": {("aks", "", "replace"), ("gke", "", "disruptive")},
    "eks.releaseVersion": {("eks", "", "disruptive")},
    "gke.config.gvnic.enabled": {("gke", "", "disruptive")},
    "aks.colour": set(),
    "name": set(),
    "clusters": set(),
    "metadata.name": set(),
    "devicePlugin.version": set(),
}


@pytest.mark.parametrize(("field", "expected"), EFFECTS.items(), ids=EFFECTS)
def test_change_when_explained_then_is_what_the_rows_say(field: str, expected: set[tuple[str, str, str]]) -> None:
    assert effects(field) == expected


def test_document_when_of_any_field_then_is_as_its_schema_has_it() -> None:
    validator = Draft202012Validator(document_schema("field"))
    for name in field_names():
        validator.validate(field_document(name, recursive=False))
    validator.validate(field_document("pools", recursive=True))
    assert not validator.is_valid({**field_document("pools", recursive=False), "kind": "Field"})


EKS_UPDATE_CONFIG = ("maxUnavailable", "maxUnavailablePercentage", "updateStrategy")
BY_VALUE = {
    ("gke", "instanceType"): "another size with the same GPUs rolls",
    ("aks", "image"): "another version of the same family rolls",
    ("eks", "eks.releaseVersion"): "an older release replaces",
    **{("eks", f"eks.updateConfig.{key}"): "is the portable upgrade" for key in EKS_UPDATE_CONFIG},
}
"""Where the kind depends on what an explanation does not have: values, and what else a native field is called."""


def differing(edit: Edit) -> list[str]:
    """List the fields in which an edited pool differs; a label or tag is one field."""
    before, after = dict(leaves(edit.pool)), dict(leaves(edit.edited))
    return [path for path in {**before, **after} if before.get(path) != after.get(path)]


def leaves(node: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(node, dict) and node and path not in ("labels", "tags", "gke.config.resourceManagerTags.tags"):
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    else:
        yield path, node


@pytest.mark.parametrize("cloud", EDITS)
def test_change_when_an_edit_brings_it_about_then_the_explanation_of_its_field_has_it(cloud: str) -> None:
    checked = 0
    for edit in EDITS[cloud]:
        fields, kind = differing(edit), class_of(edit)
        if len(fields) == 1 and kind != "nothing" and (cloud, fields[0]) not in BY_VALUE:
            told = {found for provider, _, found in effects(fields[0]) if provider == cloud}
            assert kind in told, f"{fields[0]}: {dict(edit.fields)}"
            checked += 1
    assert checked > 20


def test_change_when_told_then_names_its_source() -> None:
    for field in ("nodes.count", "sharing.mig.profile", "image"):
        for one in told(field)["changes"]:
            assert one["sentence"]
            assert one["source"]


def test_fidelity_when_told_then_is_the_provider_s_own() -> None:
    found = {(one["provider"], one["feature"]): one for one in told("sharing.mig.strategy")["fidelity"]}
    assert found["gke", "sharing.mig.mixed"]["fidelity"] == "missing"
    ability = load_provider("eks").abilities()["sharing.mig.mixed"]
    assert found["eks", "sharing.mig.mixed"]["substitute"] == ability.substitute
    assert told("capacity.reserved.gke")["fidelity"] == told("metadata")["fidelity"] == []


def test_fields_when_a_cloud_may_lack_them_then_have_a_feature() -> None:
    fields = [name.removeprefix("pools.") for name in field_names() if name.startswith("pools.")]
    judged = {field.partition(".")[0] for field in fields if features_at(field)}
    unjudged = {field.partition(".")[0] for field in fields} - judged - WITHOUT_FEATURE
    assert unjudged == set(), (
        f"add these to FEATURES in gpukube/provider.py, and to _USES in gpukube/engine/plan/fidelity.py: {unjudged}"
    )


def test_features_when_fields_are_explained_then_none_is_left_out() -> None:
    fields = [name.removeprefix("pools.") for name in field_names() if name.startswith("pools.")]
    assert {feature for field in fields for feature in features_at(field)} == set(FEATURES)
    assert features_at("sharing.mig.profile") == ("sharing.mig.single", "sharing.mig.mixed")
    assert features_at("sharing.mig") == ("sharing.mig.single", "sharing.mig.mixed", "sharing.mig.layout")
    assert features_at("placement") == ("placement.compact", "placement.named")
    assert features_at("name") == ()


def parts(part: Part) -> Iterator[Part]:
    yield part
    for field in part["fields"]:
        yield from parts(field)


def test_document_when_not_recursive_then_only_the_field_itself_is_asked_of_clouds() -> None:
    found = told("sharing.mig")
    assert found["fidelity"]
    assert {part["field"].rpartition(".")[2] for part in found["fields"]} >= {"profile", "strategy"}
    assert all(not part["changes"] and not part["fields"] for part in found["fields"])


def test_document_when_recursive_then_all_levels_are_told() -> None:
    found = {part["field"]: part for part in parts(field_document("pools", recursive=True))}
    assert len(found) > 50
    assert found["pools[].sharing.mig.profile"]["changes"]
    assert found["pools[].nodes.autoscaling.max"]["limits"] == "1 or more"
