"""What a dry run rendered against what was asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.rendered import read_manifest, require_rendered
from gpukube.cluster.release.shared_values import DEFAULT_KEY
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.jsontree import items, texts, tree
from gpukube.errors import HelmError
from tests.unit.cluster.builders import CONFIG_MAP_NAME, PLUGIN_NAME, SINGLE, VISION_TAINT, desire, operated

if TYPE_CHECKING:
    from collections.abc import Callable

PLAN = plan_release([desire(sharing=SINGLE, taints=(VISION_TAINT,))], Snapshot())


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
    "affinity ignored": (lambda made: pod_of(made, "plugin").pop("affinity"), "affinity is not the planned one"),
    "tolerations ignored": (lambda made: pod_of(made, "plugin").pop("tolerations"), "lacks the toleration for"),
    "strategy for all entries": (
        lambda made: pod_of(made, "plugin").update(containers=[{"env": [{"name": "MIG_STRATEGY", "value": "none"}]}]),
        "MIG_STRATEGY",
    ),
    "nfd left out": (lambda made: made.pop("worker"), "its dependency is missing"),
    "nfd workers shut out": (lambda made: pod_of(made, "worker").pop("tolerations"), "the NFD workers lack"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_require_when_the_chart_ignores_something_then_it_is_named(case: str) -> None:
    spoil, message = BROKEN[case]
    made = objects()
    spoil(made)
    with pytest.raises(HelmError) as caught:
        require_rendered(text_of(made), PLAN)
    assert message in str(caught.value)
    assert caught.value.diagnostics[0].code == "chart-rendered"


def test_require_when_nfd_is_not_asked_for_but_rendered_then_refused() -> None:
    values = {**PLAN.values, "nfd": {"enabled": False}}
    plan = replace(PLAN, values=values)
    with pytest.raises(HelmError, match=r"nfd\.enabled is false"):
        require_rendered(text_of(objects()), plan)


# The operator

OPERATOR_PLAN = plan_release([operated(sharing=SINGLE, taints=(VISION_TAINT,))], Snapshot())


def operator_objects() -> dict[str, dict[str, object]]:
    """Make the four objects that are looked at, as the chart renders them from the plan's values."""
    values = OPERATOR_PLAN.values
    policy = {
        "driver": {"enabled": False},
        "toolkit": {"enabled": False},
        "devicePlugin": {"enabled": True, "config": {"name": GPU_OPERATOR.config_map, "default": DEFAULT_KEY}},
        "gfd": {"enabled": True},
        "mig": {"strategy": "single"},
        "migManager": {"enabled": True, "env": [{"name": "WITH_REBOOT", "value": "true"}]},
        "daemonsets": {"tolerations": items(values, "daemonsets", "tolerations")},
    }
    operator: dict[str, object] = {"tolerations": items(values, "operator", "tolerations"), "containers": []}
    tolerations = items(values, "node-feature-discovery", "worker", "tolerations")
    worker: dict[str, object] = {"tolerations": tolerations, "containers": []}
    data = texts(values, *GPU_OPERATOR.entries)
    return {
        "policy": {"kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": policy},
        "operator": {**daemon("gpu-operator", operator), "kind": "Deployment"},
        "entries": {"kind": "ConfigMap", "metadata": {"name": GPU_OPERATOR.config_map}, "data": data},
        "worker": daemon(f"{GPU_OPERATOR.name}-node-feature-discovery-worker", worker),
    }


def spoil_policy(**changes: object) -> Callable[[dict[str, dict[str, object]]], object]:
    def spoil(made: dict[str, dict[str, object]]) -> None:
        made["policy"]["spec"] = {**tree(made["policy"], "spec"), **changes}

    return spoil


def test_require_when_all_of_the_operator_is_rendered_then_silent() -> None:
    require_rendered(text_of(operator_objects()), OPERATOR_PLAN)


BROKEN_OPERATOR: dict[str, tuple[Callable[[dict[str, dict[str, object]]], object], str]] = {
    "no policy": (lambda made: made.pop("policy"), "it renders no ClusterPolicy"),
    "no operator": (lambda made: made.pop("operator"), "it renders no Deployment gpu-operator"),
    "no config map": (lambda made: made.pop("entries"), "it renders no ConfigMap"),
    "an entry lost": (lambda made: made["entries"].update(data={}), "is missing"),
    "nfd left out": (lambda made: made.pop("worker"), "its dependency is missing"),
    "a driver of its own": (spoil_policy(driver={"enabled": True}), "driver.enabled is true, not false"),
    "a toolkit of its own": (spoil_policy(toolkit={"enabled": True}), "toolkit.enabled is true, not false"),
    "no plugin": (spoil_policy(devicePlugin={"enabled": False}), "devicePlugin.enabled is false, not true"),
    "no config": (spoil_policy(devicePlugin={"enabled": True}), "devicePlugin.config.name is absent"),
    "no features": (spoil_policy(gfd=None), "gfd.enabled is absent, not true"),
    "another strategy": (spoil_policy(mig={"strategy": "mixed"}), "mig.strategy is mixed, not single"),
    "no cut": (spoil_policy(migManager={"enabled": False}), "migManager.enabled is false"),
    "no reboot": (spoil_policy(migManager={"enabled": True}), "lacks WITH_REBOOT"),
    "operands shut out": (spoil_policy(daemonsets={}), "the operands lack the toleration for dedicated"),
    "operator shut out": (
        lambda made: pod_of(made, "operator").pop("tolerations"),
        "the operator lacks the toleration for dedicated",
    ),
}


@pytest.mark.parametrize("case", BROKEN_OPERATOR)
def test_require_when_the_operators_chart_ignores_something_then_it_is_named(case: str) -> None:
    spoil, message = BROKEN_OPERATOR[case]
    made = operator_objects()
    spoil(made)
    with pytest.raises(HelmError) as caught:
        require_rendered(text_of(made), OPERATOR_PLAN)
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.seen
    assert "gpu-operator v26.7.0 or newer" in diagnostic.fix


def test_read_when_it_is_no_yaml_then_our_error() -> None:
    with pytest.raises(HelmError, match="not render valid YAML"):
        read_manifest("a: [", PLAN)


def test_read_when_documents_are_empty_then_left_out() -> None:
    assert read_manifest("---\n# Source: x\n---\nkind: A\n", PLAN) == [{"kind": "A"}]
