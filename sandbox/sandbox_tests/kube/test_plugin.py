"""What the imitated device plugin advertises: nvidia.com/* per geometry, strategy and sharing."""

from __future__ import annotations

import pytest

from gpukube_sandbox.kube.nodes.hardware import MODELS, find_model, fits, resource_of
from gpukube_sandbox.kube.nodes.plugin import advertise
from gpukube_sandbox.kube.nodes.pluginconfig import Crash, Settings, choose_config, read_settings
from gpukube_sandbox.kube.nodes.shapes import GpuShape

SLICED = ("1g.5gb",) * 7
T4 = GpuShape("T4", 1)
A100 = GpuShape("A100-40GB", 8, SLICED)
PARTLY = GpuShape("A100-80GB", 8, (("1g.10gb",) * 7,) * 2)
BALANCED = GpuShape("A100-40GB", 8, ("1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"))


def sharing(way: str, replicas: int, *, name: str = "nvidia.com/gpu", more: str = "") -> str:
    return f"version: v1\nsharing:\n  {way}:\n    {more}\n    resources: [{{name: {name}, replicas: {replicas}}}]\n"


@pytest.mark.parametrize(
    ("shape", "env", "text", "expected"),
    [
        pytest.param(A100, {}, "flags: {migStrategy: single}", {"nvidia.com/gpu": 56}, id="single-56"),
        pytest.param(A100, {}, "flags: {migStrategy: mixed}", {"nvidia.com/mig-1g.5gb": 56}, id="mixed-56"),
        pytest.param(A100, {}, None, {"nvidia.com/gpu": 8}, id="none-ignores-mig"),
        pytest.param(
            A100, {"MIG_STRATEGY": "none"}, "flags: {migStrategy: mixed}", {"nvidia.com/gpu": 8}, id="env-beats-file"
        ),
        pytest.param(
            A100, {"MIG_STRATEGY": "single"}, sharing("timeSlicing", 2), {"nvidia.com/gpu": 112}, id="single-sliced-112"
        ),
        pytest.param(
            A100,
            {"MIG_STRATEGY": "single"},
            sharing("timeSlicing", 2, name="nvidia.com/mig-1g.5gb"),
            {"nvidia.com/gpu": 56},
            id="name-that-matches-nothing-is-skipped",
        ),
        pytest.param(
            A100,
            {"MIG_STRATEGY": "mixed"},
            sharing("timeSlicing", 3, name="mig-1g.5gb"),
            {"nvidia.com/mig-1g.5gb": 168},
            id="prefix-is-added",
        ),
        pytest.param(T4, {}, sharing("timeSlicing", 4), {"nvidia.com/gpu": 4}, id="t4-sliced-4"),
        pytest.param(
            T4, {}, sharing("timeSlicing", 4, more="renameByDefault: true"), {"nvidia.com/gpu.shared": 4}, id="renamed"
        ),
        pytest.param(
            BALANCED,
            {"MIG_STRATEGY": "mixed"},
            None,
            {"nvidia.com/mig-1g.5gb": 16, "nvidia.com/mig-2g.10gb": 8, "nvidia.com/mig-3g.20gb": 8},
            id="balanced",
        ),
        pytest.param(
            PARTLY,
            {"MIG_STRATEGY": "mixed"},
            None,
            {"nvidia.com/mig-1g.10gb": 14, "nvidia.com/gpu": 6},
            id="partly-mixed",
        ),
        pytest.param(
            GpuShape("A30-24GB", 4, ("1g.6gb",) * 4),
            {"MIG_STRATEGY": "mixed"},
            None,
            {"nvidia.com/mig-1g.6gb": 16},
            id="a30",
        ),
        pytest.param(
            GpuShape("H100-80GB", 8, ("1g.20gb",) * 4),
            {"MIG_STRATEGY": "single"},
            None,
            {"nvidia.com/gpu": 32},
            id="h100",
        ),
        pytest.param(
            GpuShape("V100-16GB", 4), {"MIG_STRATEGY": "single"}, None, {"nvidia.com/gpu": 4}, id="single-without-mig"
        ),
        pytest.param(
            GpuShape("A100-40GB", 1, ((),)), {"MIG_STRATEGY": "mixed"}, None, {}, id="mixed-mig-on-without-instances"
        ),
        pytest.param(
            GpuShape("T4", 1, driver=False), {"FAIL_ON_INIT_ERROR": "false"}, None, {}, id="no-driver-but-told-to-wait"
        ),
    ],
)
def test_advertise_when_settings_are_good_then_counts(
    shape: GpuShape, env: dict[str, str], text: str | None, expected: dict[str, int]
) -> None:
    assert advertise(shape, read_settings(text, env)).resources == expected


@pytest.mark.parametrize(
    ("shape", "env", "text", "message"),
    [
        pytest.param(BALANCED, {"MIG_STRATEGY": "single"}, None, "more than one MIG device type", id="mixed-geometry"),
        pytest.param(PARTLY, {"MIG_STRATEGY": "single"}, None, "same migEnabled value", id="mig-partly-on"),
        pytest.param(
            GpuShape("A100-40GB", 2, (SLICED, ())),
            {"MIG_STRATEGY": "single"},
            None,
            "device 1 has no MIG devices configured",
            id="mig-on-without-instances",
        ),
        pytest.param(T4, {}, sharing("timeSlicing", 1), "number of replicas must be >= 2", id="one-replica"),
        pytest.param(T4, {}, "sharing: {timeSlicing: {}}", "no resources specified", id="empty-sharing"),
        pytest.param(T4, {}, "version: v2", "unknown version: v2", id="version"),
        pytest.param(T4, {}, "a: [", "error parsing config file", id="no-yaml"),
        pytest.param(T4, {"MIG_STRATEGY": "both"}, None, "unknown MIG strategy: both", id="strategy"),
        pytest.param(GpuShape("T4", 1, driver=False), {}, None, "could not load NVML library", id="no-driver"),
        pytest.param(None, {}, None, "could not load NVML library", id="no-gpu"),
        pytest.param(A100, {}, sharing("mps", 4), "MPS is not supported for MIG devices", id="mps-on-mig"),
        pytest.param(
            T4, {"MIG_STRATEGY": "mixed"}, sharing("mps", 4), "mixed is not supported with MPS", id="mps-mixed"
        ),
        pytest.param(T4, {}, sharing("mps", 49), "49 replicas, maximum 48", id="mps-too-many"),
        pytest.param(GpuShape("V100-16GB", 1), {}, sharing("mps", 17), "maximum 16", id="mps-too-many-volta"),
    ],
)
def test_advertise_when_something_is_wrong_then_plugin_exits(
    shape: GpuShape | None, env: dict[str, str], text: str | None, message: str
) -> None:
    with pytest.raises(Crash, match=message):
        advertise(shape, read_settings(text, env))


def test_advertise_when_mps_daemon_is_missing_then_waits_and_retries() -> None:
    settings = read_settings(sharing("mps", 4), {})

    alone = advertise(T4, settings)
    together = advertise(T4, settings, mps_daemon=True)

    assert (alone.resources, alone.retry) == ({}, True)
    assert (together.resources, together.retry) == ({"nvidia.com/gpu": 4}, False)
    assert together.limited == {"nvidia.com/gpu"}


def test_read_settings_when_all_sources_differ_then_command_line_wins() -> None:
    text = "flags: {migStrategy: none}"

    assert read_settings(text, {"MIG_STRATEGY": "single"}, ["--mig-strategy=mixed"]).mig_strategy == "mixed"
    assert read_settings(text, {"MIG_STRATEGY": "single"}).mig_strategy == "single"
    assert read_settings(None, {}) == Settings()


@pytest.mark.parametrize(
    ("label", "keys", "default", "fallbacks", "expected"),
    [
        pytest.param("ts", {"ts", "other"}, "other", (), "ts", id="label"),
        pytest.param("", {"ts", "other"}, "other", (), "other", id="default"),
        pytest.param("", {"default", "other"}, "", ("named", "single"), "default", id="named"),
        pytest.param("", {"only"}, "", ("named", "single"), "only", id="single"),
        pytest.param("", {"a", "b"}, "", ("named", "single", "empty"), None, id="empty"),
    ],
)
def test_choose_config_when_something_fits_then_key(
    label: str, keys: set[str], default: str, fallbacks: tuple[str, ...], expected: str | None
) -> None:
    assert choose_config(label, keys, default, fallbacks) == expected


@pytest.mark.parametrize(
    ("label", "keys", "default", "fallbacks", "message"),
    [
        pytest.param("typo", {"ts"}, "ts", ("single",), "specified config typo does not exist", id="unknown-label"),
        pytest.param("", {"ts"}, "typo", ("single",), "specified config typo does not exist", id="unknown-default"),
        pytest.param("", {"a", "b"}, "", ("named", "single"), "all fallbacks failed", id="nothing-left"),
        pytest.param("", set(), "", ("empty",), "no configuration files available", id="empty-map"),
        pytest.param("", {"a", "b"}, "", ("other",), "unknown fallback strategy: other", id="strategy"),
    ],
)
def test_choose_config_when_nothing_fits_then_exits(
    label: str, keys: set[str], default: str, fallbacks: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Crash, match=message):
        choose_config(label, keys, default, fallbacks)


@pytest.mark.parametrize(
    ("model", "layout", "expected"),
    [
        ("A100-40GB", SLICED, True),
        ("A100-40GB", ("1g.5gb",) * 8, False),
        ("A100-40GB", ("4g.20gb", "3g.20gb"), True),
        ("A100-40GB", ("3g.20gb", "3g.20gb", "1g.5gb"), False),
        ("A100-40GB", ("4g.20gb", "4g.20gb"), False),
        ("A100-40GB", ("3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"), True),
        ("A100-40GB", ("1g.10gb", *("1g.5gb",) * 6), True),
        ("A100-80GB", ("1g.5gb",), False),
        ("H200-141GB", ("7g.141gb",), True),
        ("RTXPRO6000-96GB", ("2g.48gb", "1g.24gb", "1g.24gb"), True),
        ("A30-24GB", ("2g.12gb", "2g.12gb"), True),
        ("T4-16GB", ("1g.5gb",), False),
    ],
)
def test_fits_when_layout_is_given_then_places_decide(model: str, layout: tuple[str, ...], expected: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert fits(find_model(model), layout) is expected


def test_profiles_when_alone_then_as_many_fit_as_the_table_says() -> None:
    for model in MODELS.values():
        for profile in model.profiles.values():
            assert fits(model, (profile.name,) * profile.max_count), (model.name, profile.name)
            assert not fits(model, (profile.name,) * (profile.max_count + 1)), (model.name, profile.name)


@pytest.mark.parametrize(
    ("profile", "resource"),
    [
        ("1g.5gb", "nvidia.com/mig-1g.5gb"),
        ("1g.5gb+me", "nvidia.com/mig-1g.5gb.me"),
        ("1g.24gb+me.all", "nvidia.com/mig-1g.24gb.me.all"),
        ("1g.24gb-me", "nvidia.com/mig-1g.24gb-me"),
    ],
)
def test_resource_of_when_profile_has_attributes_then_plus_becomes_dot(profile: str, resource: str) -> None:
    assert resource_of(profile) == resource


def test_advertise_when_layout_is_impossible_then_lookup_error() -> None:
    with pytest.raises(LookupError, match="cannot be cut"):
        advertise(GpuShape("A100-40GB", 1, ("1g.10gb",) * 7), Settings())
