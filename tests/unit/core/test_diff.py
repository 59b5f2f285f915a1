"""The diff: what is declared against what is live."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.diff import CLOSED_GROUPS, diff_fields
from gpukube.core.fields import COUNT, KUBERNETES_VERSION, LEAST, MIG_PROFILE, FieldPath, label
from gpukube.core.values import Change
from tests.builders import by_path

FIELDS = st.dictionaries(
    st.sampled_from(["instanceType", "labels[a]", "labels[b]", "taints", "nodes.count", "tags[x]", "disk.type"]),
    st.one_of(st.integers(0, 2), st.sampled_from(["a", "b"])),
).map(by_path)


@pytest.mark.parametrize(
    ("desired", "observed", "changes"),
    [
        pytest.param({"instanceType": "a"}, {"instanceType": "a"}, (), id="same"),
        pytest.param({"labels[t]": "x"}, {"labels[t]": "y"}, (Change(label("t"), "y", "x"),), id="label changed"),
        pytest.param({"labels[t]": "x"}, {}, (Change(label("t"), None, "x"),), id="owned label removed by hand"),
        pytest.param({}, {"labels[t]": "x"}, (Change(label("t"), "x", None),), id="label no longer declared"),
        pytest.param({}, {"tags[t]": "x"}, (), id="tag added by a policy is no drift"),
        pytest.param({}, {"disk.type": "Ephemeral"}, (), id="server default is no drift"),
        pytest.param({}, {"zones": ("1",)}, (), id="zone chosen by the cloud is no drift"),
        pytest.param(
            {"nodes.count": 2},
            {"nodes.autoscaling.min": 1},
            (Change(LEAST, 1, None), Change(COUNT, None, 2)),
            id="autoscaling switched off",
        ),
        pytest.param({"kubernetesVersion": "1.34"}, {"kubernetesVersion": "1.34.2"}, (), id="any patch will do"),
        pytest.param({"kubernetesVersion": "1.34"}, {"kubernetesVersion": "1.34.1-gke.5"}, (), id="any build will do"),
        pytest.param({"kubernetesVersion": "1.34.1"}, {"kubernetesVersion": "1.34.1-gke.5"}, (), id="any build of it"),
        pytest.param({}, {"kubernetesVersion": "1.34.1"}, (), id="version of the cluster is no drift"),
        pytest.param(
            {"kubernetesVersion": "1.3"},
            {"kubernetesVersion": "1.34"},
            (Change(KUBERNETES_VERSION, "1.34", "1.3"),),
            id="another minor version",
        ),
        pytest.param(
            {"kubernetesVersion": "1.34.2"},
            {"kubernetesVersion": "1.34"},
            (Change(KUBERNETES_VERSION, "1.34", "1.34.2"),),
            id="patch that is asked for",
        ),
        pytest.param(
            {"kubernetesVersion": "1.34"},
            {},
            (Change(KUBERNETES_VERSION, None, "1.34"),),
            id="version that is not told",
        ),
        pytest.param({}, {"sharing.mig.profile": "1g.5gb"}, (Change(MIG_PROFILE, "1g.5gb", None),), id="mig dropped"),
    ],
)
def test_diff_when_compared_then_only_what_is_ours_counts(
    desired: dict[str, object], observed: dict[str, object], changes: tuple[Change, ...]
) -> None:
    assert diff_fields(by_path(desired), by_path(observed)) == changes


@given(FIELDS, FIELDS)
def test_diff_when_changes_are_applied_then_nothing_is_left(
    desired: dict[FieldPath, object], observed: dict[FieldPath, object]
) -> None:
    live = dict(observed)
    for change in diff_fields(desired, observed):
        if change.new is None:
            del live[change.field]
        else:
            live[change.field] = change.new
    assert diff_fields(desired, live) == ()


@given(FIELDS, FIELDS)
def test_diff_when_field_is_open_and_undeclared_then_it_is_never_reported(
    desired: dict[FieldPath, object], observed: dict[FieldPath, object]
) -> None:
    for change in diff_fields(desired, observed):
        assert change.field in desired or change.field[0] in CLOSED_GROUPS
        assert change.old != change.new
