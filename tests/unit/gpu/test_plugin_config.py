"""The device plugin's config file."""

from __future__ import annotations

import re
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpukube.gpu.plugin_config import UNSHARED, config_key, plugin_config, render_config
from gpukube.gpu.sharing import MigCut, Sharing, Slicing

CASES: list[tuple[str, Sharing, dict[str, object]]] = [
    ("whole", Sharing(), {"version": "v1", "flags": {"migStrategy": "none"}}),
    ("single", Sharing(MigCut("1g.5gb", "single")), {"version": "v1", "flags": {"migStrategy": "single"}}),
    ("mixed", Sharing(MigCut("1g.5gb", "mixed")), {"version": "v1", "flags": {"migStrategy": "mixed"}}),
    (
        "time-slicing",
        Sharing(None, Slicing("time-slicing", 4)),
        {
            "version": "v1",
            "flags": {"migStrategy": "none"},
            "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}},
        },
    ),
    (
        "time-slicing with everything",
        Sharing(None, Slicing("time-slicing", 4, fail_requests_greater_than_one=True, rename=True)),
        {
            "version": "v1",
            "flags": {"migStrategy": "none"},
            "sharing": {
                "timeSlicing": {
                    "renameByDefault": True,
                    "failRequestsGreaterThanOne": True,
                    "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
                }
            },
        },
    ),
    (
        "mps",
        Sharing(None, Slicing("mps", 8, fail_requests_greater_than_one=False)),
        {
            "version": "v1",
            "flags": {"migStrategy": "none"},
            "sharing": {
                "mps": {
                    "failRequestsGreaterThanOne": False,
                    "resources": [{"name": "nvidia.com/gpu", "replicas": 8}],
                }
            },
        },
    ),
    (
        "time-slicing of MIG, single: the GPU's name",
        Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 2)),
        {
            "version": "v1",
            "flags": {"migStrategy": "single"},
            "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}},
        },
    ),
    (
        "time-slicing of MIG, mixed: the profile's name, without .shared",
        Sharing(MigCut("1g.5gb+me", "mixed"), Slicing("time-slicing", 2, rename=True)),
        {
            "version": "v1",
            "flags": {"migStrategy": "mixed"},
            "sharing": {
                "timeSlicing": {
                    "renameByDefault": True,
                    "resources": [{"name": "nvidia.com/mig-1g.5gb.me", "replicas": 2}],
                }
            },
        },
    ),
]


@pytest.mark.parametrize(("sharing", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_plugin_config_when_shared_then_strategy_and_names_go_together(
    sharing: Sharing, expected: dict[str, object]
) -> None:
    config = plugin_config(sharing)
    assert config == expected
    assert yaml.safe_load(render_config(config)) == expected


def test_unshared_when_read_then_says_none_and_shares_nothing() -> None:
    assert plugin_config(Sharing()) == UNSHARED


def test_render_when_shared_then_block_yaml() -> None:
    sharing = Sharing(MigCut("1g.5gb", "mixed"), Slicing("time-slicing", 2, rename=True))
    assert render_config(plugin_config(sharing)).splitlines() == [
        'version: "v1"',
        "flags:",
        '  migStrategy: "mixed"',
        "sharing:",
        "  timeSlicing:",
        "    renameByDefault: true",
        "    resources:",
        '    - name: "nvidia.com/mig-1g.5gb"',
        "      replicas: 2",
    ]


def sharings() -> st.SearchStrategy[Sharing]:
    strategies: tuple[Literal["single", "mixed"], ...] = ("single", "mixed")
    modes: tuple[Literal["time-slicing", "mps"], ...] = ("time-slicing", "mps")
    cuts = st.builds(MigCut, st.sampled_from(["1g.5gb", "1g.5gb+me", "2g.10gb"]), st.sampled_from(strategies))
    slicings = st.builds(Slicing, st.sampled_from(modes), st.integers(2, 48), st.none() | st.booleans(), st.booleans())
    return st.builds(Sharing, st.none() | cuts, st.none() | slicings)


@given(sharings(), sharings())
def test_config_key_when_configs_differ_then_keys_differ_and_all_are_fit_label_values(a: Sharing, b: Sharing) -> None:
    one, two = plugin_config(a), plugin_config(b)
    assert (config_key(one) == config_key(two)) is (one == two)
    assert re.fullmatch(r"c-[0-9a-f]{12}", config_key(one))
    assert isinstance(yaml.safe_load(config_key(one)), str)
    assert yaml.safe_load(render_config(one)) == one


def test_config_key_when_the_order_of_keys_differs_then_the_same() -> None:
    assert config_key({"version": "v1", "flags": {}}) == config_key({"flags": {}, "version": "v1"})


def test_config_key_when_profiles_differ_under_single_then_one_config_serves_both() -> None:
    small, large = (plugin_config(Sharing(MigCut(name, "single"))) for name in ("1g.5gb", "3g.20gb"))
    assert config_key(small) == config_key(large)


def test_config_key_when_computed_then_stable_over_releases() -> None:
    assert config_key(UNSHARED) == "c-be13f85b4769"


def test_plugin_config_when_laid_out_then_replicas_of_every_profile_whatever_the_order() -> None:
    slicing = Slicing("time-slicing", 3)
    one = plugin_config(Sharing(MigCut("", "mixed", ("3g.20gb", "1g.5gb+me", "1g.5gb+me")), slicing))
    assert one == {
        "version": "v1",
        "flags": {"migStrategy": "mixed"},
        "sharing": {
            "timeSlicing": {
                "resources": [
                    {"name": "nvidia.com/mig-1g.5gb.me", "replicas": 3},
                    {"name": "nvidia.com/mig-3g.20gb", "replicas": 3},
                ]
            }
        },
    }
    other = plugin_config(Sharing(MigCut("", "mixed", ("1g.5gb+me", "3g.20gb")), slicing))
    assert config_key(one) == config_key(other)
    assert yaml.safe_load(render_config(one)) == one
