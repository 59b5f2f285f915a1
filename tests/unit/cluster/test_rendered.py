"""What a dry run rendered against what was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.cluster.release_plan import plan_release
from gpukube.cluster.rendered import read_manifest, require_rendered
from gpukube.cluster.sighting import Sighting
from gpukube.errors import HelmError
from tests.unit.cluster.builders import CONFIG_MAP_NAME, PLUGIN_NAME, SINGLE, VISION_TAINT, desire

if TYPE_CHECKING:
    from collections.abc import Callable

PLAN = plan_release([desire(sharing=SINGLE, taints=(VISION_TAINT,))], Sighting())


def objects() -> dict[str, dict[str, object]]:
    """Make the three objects that are looked at, as the chart renders them from the plan's values."""
    values = PLAN.values
    config, nfd = values["config"], values["nfd"]
    assert isinstance(config, dict)
    assert isinstance(nfd, dict)
    plugin: dict[str, object] = {
        "affinity": values["affinity"],
        "tolerations": values["tolerations"],
        "containers": [{"name": "nvidia-device-plugin-ctr", "env": [{"name": "CONFIG_FILE"}]}],
    }
    worker = {"tolerations": nfd["worker"]["tolerations"], "containers": []}
    return {
        "plugin": daemon(PLUGIN_NAME, plugin),
        "entries": {"kind": "ConfigMap", "metadata": {"name": CONFIG_MAP_NAME}, "data": dict(config["map"])},
        "worker": daemon(f"{PLUGIN_NAME}-node-feature-discovery-worker", worker),
    }


def daemon(name: str, pod: dict[str, object]) -> dict[str, object]:
    return {"kind": "DaemonSet", "metadata": {"name": name}, "spec": {"template": {"spec": pod}}}


def text_of(made: dict[str, dict[str, object]]) -> str:
    return yaml.safe_dump_all(made.values())


def pod_of(made: dict[str, dict[str, object]], name: str) -> dict[str, object]:
    spec = made[name]["spec"]
    assert isinstance(spec, dict)
    pod: dict[str, object] = spec["template"]["spec"]
    return pod


def test_require_when_all_is_rendered_then_silent() -> None:
    require_rendered(text_of(objects()), PLAN)


BROKEN: dict[str, tuple[Callable[[dict[str, dict[str, object]]], object], str]] = {
    "no plugin": (lambda made: made.pop("plugin"), f"it renders no DaemonSet {PLUGIN_NAME}"),
    "no config map": (lambda made: made.pop("entries"), "it renders no ConfigMap"),
    "an entry lost": (lambda made: made["entries"].update(data={}), "is missing"),
    "an entry changed": (
        lambda made: made["entries"].update(data=dict.fromkeys(PLAN.keys, "version: v2")),
        "is missing",
    ),
    "affinity ignored": (lambda made: pod_of(made, "plugin").pop("affinity"), "affinity is not the one given"),
    "tolerations ignored": (lambda made: pod_of(made, "plugin").pop("tolerations"), "lacks the toleration of"),
    "strategy for all entries": (
        lambda made: pod_of(made, "plugin").update(containers=[{"env": [{"name": "MIG_STRATEGY", "value": "none"}]}]),
        "MIG_STRATEGY",
    ),
    "nfd left out": (lambda made: made.pop("worker"), "its dependency is missing"),
    "nfd workers shut out": (lambda made: pod_of(made, "worker").pop("tolerations"), "the NFD workers lack"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_require_when_the_chart_ignores_something_then_it_is_named(case: str) -> None:
    spoil, says = BROKEN[case]
    made = objects()
    spoil(made)
    with pytest.raises(HelmError) as caught:
        require_rendered(text_of(made), PLAN)
    assert says in str(caught.value)
    assert caught.value.diagnostics[0].code == "chart-rendered"


def test_require_when_nfd_is_not_asked_for_but_rendered_then_refused() -> None:
    values = {**PLAN.values, "nfd": {"enabled": False}}
    plan = type(PLAN)("install", "", values, {}, ())
    with pytest.raises(HelmError, match=r"nfd\.enabled is false"):
        require_rendered(text_of(objects()), plan)


def test_read_when_it_is_no_yaml_then_our_error() -> None:
    with pytest.raises(HelmError, match="not YAML"):
        read_manifest("a: [", PLAN)


def test_read_when_documents_are_empty_then_left_out() -> None:
    assert read_manifest("---\n# Source: x\n---\nkind: A\n", PLAN) == [{"kind": "A"}]
