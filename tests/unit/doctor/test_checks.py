"""Every check of the inside: nothing on a healthy cluster, and exactly this one on its fault."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.faults import LabelNode, Reconcile, Restart
from gpukube.core.values import OWNER_LABEL
from gpukube.doctor.check import examine
from gpukube.doctor.checks import claims, configs, dra, fabric, mig, nodes, placement, plugins, releases, workloads
from gpukube.doctor.checks import components as parts
from tests.builders import make_observed
from tests.unit.cluster.builders import desire
from tests.unit.doctor.cases import CASES, CONFIG, HEALTHY, OTHERS, UNCOUNTED
from tests.unit.doctor.patients import (
    GPU_NODE,
    NFD_WORKER,
    NS,
    PLUGIN,
    daemonset,
    node,
    patient,
    relabelled,
)

if TYPE_CHECKING:
    from gpukube.core.faults import Fault, SafeFix
    from gpukube.doctor.evidence import Evidence

INSIDE = (
    *placement.CHECKS,
    *plugins.CHECKS,
    *dra.CHECKS,
    *parts.CHECKS,
    *configs.CHECKS,
    *mig.CHECKS,
    *releases.CHECKS,
    *workloads.CHECKS,
    *claims.CHECKS,
    *nodes.CHECKS,
    *fabric.CHECKS,
)


def found_in(evidence: Evidence) -> dict[str, list[Fault]]:
    found: dict[str, list[Fault]] = {}
    for item in examine(evidence, INSIDE).found:
        found.setdefault(item.check.id, []).append(item.finding)
    return found


@pytest.mark.parametrize("name", HEALTHY)
def test_checks_when_a_cluster_is_healthy_then_nothing_is_found(name: str) -> None:
    assert found_in(HEALTHY[name]) == {}


@pytest.mark.parametrize("name", CASES)
def test_checks_when_one_thing_is_wrong_then_its_check_finds_it_and_no_other(name: str) -> None:
    check, evidence = CASES[name]
    found = found_in(evidence)
    assert set(found) == {check}


def test_checks_when_all_are_listed_then_every_one_has_a_case() -> None:
    checks, shown = {check.id for check in INSIDE}, {check for check, _evidence in CASES.values()}
    assert checks - shown == set(), (
        f"add clusters with these faults to CASES in tests/unit/doctor/cases.py: {checks - shown}"
    )
    assert shown - checks == set(), f"no module of gpukube/doctor/checks has these checks: {shown - checks}"


@pytest.mark.parametrize("name", CASES)
def test_ailments_when_told_then_they_name_place_remedy_and_are_one_line(name: str) -> None:
    check, evidence = CASES[name]
    for found in found_in(evidence)[check]:
        assert found.where.source
        assert found.fix
        assert "\n" not in found.seen
        assert found.seen[-1] != "."
        assert not found.seen.startswith(("failed to", "invalid"))


COMMAND = re.compile(r"(?:^|: )((?:kubectl|helm|gpukube) [a-z].*)$")


@pytest.mark.parametrize("name", CASES)
def test_ailments_when_a_remedy_has_a_command_then_it_is_the_last_and_nothing_is_glued_to_it(name: str) -> None:
    check, evidence = CASES[name]
    for found in found_in(evidence)[check]:
        named = re.search(r"(?<![\w/`.-])(?:kubectl|helm|gpukube) [a-z]", found.fix)
        command = COMMAND.search(found.fix)
        assert (named is None) == (command is None), found.fix
        if command is None:
            continue
        assert command.start(1) == named.start() if named else False, found.fix
        for one in re.split(r" && ", command[1]):
            words = shlex.split(one)
            assert words[0] in ("kubectl", "helm", "gpukube"), found.fix
            assert not any(word.endswith((",", ";", ")", ":")) or word in PROSE for word in words), found.fix


PROSE = ("shows", "then", "and", "or", "lists", "if", "restarts", "(and")
"""Words of a sentence that goes on behind a command."""


def test_node_when_it_boots_then_a_warning_and_when_its_kubelet_is_silent_an_error() -> None:
    def severity(name: str) -> str:
        (found,) = found_in(CASES[name][1])["node-not-ready"]
        return found.severity

    assert severity("a machine that boots") == severity("a node that lost its network") == "warning"
    assert severity("a kubelet that went silent") == severity("a node that says nothing of itself") == "error"


@pytest.mark.parametrize(
    ("name", "check", "seen", "severity"),
    [
        (
            "a node without a network for three days",
            "node-not-ready",
            "its kubelet reports NotReady for 3 days (KubeletNotReady: cni plugin not initialized)",
            "error",
        ),
        ("a full disk", "node-condition", "it has DiskPressure for 2 h (KubeletHasDiskPressure)", "error"),
        (
            "a node that gets its routes",
            "node-condition",
            "it has NetworkUnavailable for 1 min (NoRouteCreated)",
            "warning",
        ),
    ],
)
def test_node_when_a_condition_lasts_then_reason_and_age_are_told_and_it_is_an_error(
    name: str, check: str, seen: str, severity: str
) -> None:
    (found,) = found_in(CASES[name][1])[check]
    assert (found.seen, found.severity) == (seen, severity)


@pytest.mark.parametrize("namespace", ["default", "gpu-resources", "kube-system", "zoo"])
def test_two_advertisers_when_one_is_ours_then_the_other_is_removed_and_ours_restarted(namespace: str) -> None:
    foreign = daemonset("nvidia-device-plugin-daemonset", "nvidia-device-plugin", namespace, {})
    marks = {
        "app.kubernetes.io/instance": "gpukube-nvidia-device-plugin",
        "helm.sh/chart": "nvidia-device-plugin-0.20.0",
    }
    ours = daemonset("gpukube-nvidia-device-plugin", "nvidia-device-plugin", "gpukube-system", marks)
    for order in ((ours, foreign), (foreign, ours)):
        (found,) = found_in(patient(daemonsets=(*order, NFD_WORKER)))["two-advertisers"]
        assert found.fix == (
            f"kubectl delete daemonset nvidia-device-plugin-daemonset --namespace {namespace} && "
            "kubectl rollout restart daemonset/gpukube-nvidia-device-plugin --namespace gpukube-system"
        )


REFUSED = 'Error creating: pods "nvdp-nvidia-device-plugin-" is forbidden: '


@pytest.mark.parametrize(
    ("said", "fix"),
    [
        (
            "exceeded quota: gpus, requested: pods=1, used: pods=0, limited: pods=0",
            "raise its limits: kubectl edit resourcequota gpus --namespace nvidia-device-plugin",
        ),
        (
            "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]",
            (
                "pods of priority class system-node-critical need a ResourceQuota in namespace "
                "nvidia-device-plugin that allows that class"
            ),
        ),
        (
            'pod rejected: RuntimeClass "nvidia" not found',
            "create RuntimeClass nvidia, with the handler of the nodes' container runtime",
        ),
        (
            'error looking up service account nvidia-device-plugin/x: serviceaccount "x" not found',
            "helm rollback nvdp 3 --namespace nvidia-device-plugin",
        ),
        (
            'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
            "kubectl label namespace nvidia-device-plugin pod-security.kubernetes.io/enforce=privileged --overwrite",
        ),
        (
            'Internal error occurred: failed calling webhook "pods.example.com": connection refused',
            (
                "webhook pods.example.com does not respond; find its service in its configuration: kubectl get "
                "validatingwebhookconfigurations,mutatingwebhookconfigurations --output yaml"
            ),
        ),
        (
            "",
            f"its events show why: kubectl describe daemonset nvdp-nvidia-device-plugin --namespace {NS}",
        ),
    ],
)
def test_pods_refused_when_the_api_server_said_why_then_its_words_and_their_remedy(said: str, fix: str) -> None:
    key = ("DaemonSet", NS, "nvdp-nvidia-device-plugin")
    words = f"{REFUSED}{said}" if said else ""
    (found,) = found_in(patient(UNCOUNTED, stack_pods=OTHERS, refusals={key: words}))["plugin-pods-refused"]
    assert (found.fix, found.evidence) == (fix, (words,) if said else ())
    assert "anywhere" not in found.why


def test_tolerations_when_somebody_took_them_off_then_the_taint_stays() -> None:
    pool = desire()
    live = make_observed(pool, owner=pool.target.owner, pool=pool.target.pool, labels=pool.labels)
    bare = {**PLUGIN, "spec": {"template": {"spec": {**PLUGIN["spec"]["template"]["spec"], "tolerations": []}}}}
    made = replace(node("gpu-1", {**GPU_NODE.labels, **pool.labels}, {}), taints=pool.effective_taints)
    for changes in ({"live": (live,)}, {"live": (live,), "desired": (pool,)}, {"desired": (pool,)}):
        seen = patient(made, daemonsets=(bare, NFD_WORKER), stack_pods=(), **changes)
        (found,) = found_in(seen)["plugin-not-tolerating"]
        assert (found.fix, found.safe_fix) == ("gpukube pool apply -f SPEC", Reconcile())


MENDED: dict[str, SafeFix] = {
    "our label is gone": LabelNode("gpu-1", CONFIG, None, desire().ownership.config_key),
    "devices of a former cut": Restart(PLUGIN["metadata"]["namespace"], PLUGIN["metadata"]["name"]),
}


@pytest.mark.parametrize("name", CASES)
def test_ailments_when_a_cluster_is_not_ours_then_only_labels_and_restarts_are_offered(name: str) -> None:
    check, evidence = CASES[name]
    offered = {found.safe_fix for found in found_in(evidence)[check]} - {None}
    desired = MENDED.get(name)
    assert all(isinstance(item, Restart) for item in offered) if desired is None else offered == {desired}


def test_no_plugin_when_the_node_is_ours_then_our_release_is_offered() -> None:
    ours = relabelled(UNCOUNTED, **{OWNER_LABEL: "ml-platform"})
    (found,) = found_in(patient(ours, daemonsets=(NFD_WORKER,)))["no-plugin"]
    assert found.safe_fix == Reconcile()


def test_lost_label_when_it_makes_the_cut_then_it_is_told_and_not_offered() -> None:
    pool = desire(operator=True)
    labels = {**pool.labels, "nvidia.com/mig.config": "all-1g.5gb"}
    live = make_observed(pool, owner=pool.target.owner, pool=pool.target.pool, labels=labels)
    seen = {**GPU_NODE.labels, **labels, "nvidia.com/mig.config": "all-2g.10gb"}
    (found,) = found_in(patient(node("gpu-1", seen, {"nvidia.com/gpu": 8}), live=(live,)))["node-labels-lost"]
    assert (found.safe_fix, "follows the node" in found.why) == (None, True)
