"""Every cloud, image, sharing, wish and advertiser that is there already: one advertiser on each node, or a refusal.

Who advertises in the end is counted here from the requests, the node labels and what is in the cluster, by rules
written out anew: what the solver believes of itself does not count.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.cluster.kube.views import NodeView
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.advertisers import check_advertisers, find_advertisers
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.owners import choose_release, decide_owner
from gpukube.core.resolve import promise_of
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, Ownership
from gpukube.engine.plan.ownership import has_operator
from gpukube.errors import Finding
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.provider import load_provider
from tests.builders import make_target
from tests.unit.cluster.builders import desire, installed, operated, operating
from tests.unit.cluster.test_advertisers import GKE, OPERATOR, OWN_BUILD, STATIC, chart_release, dra_release
from tests.unit.gpukube_eks.samples import eks_target
from tests.unit.gpukube_gke.targets import gke_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Desired, Target

IMAGES: dict[str, Callable[..., Target]] = {
    "eks al2023": eks_target,
    "eks bottlerocket": lambda **changes: eks_target(image="bottlerocket", **changes),
    "aks ubuntu": make_target,
    "aks container linux": lambda **changes: make_target(image="AzureContainerLinux", **changes),
    "aks ubuntu, driver of the operator": lambda **changes: make_target(**{"driver_owner": "operator", **changes}),
    "gke cos": gke_target,
    "gke cos, driver of the operator": lambda **changes: gke_target(**{"driver_owner": "operator", **changes}),
    "gke ubuntu, driver of the operator": lambda **changes: gke_target(
        **{"driver_owner": "operator", "image": "UBUNTU_CONTAINERD", **changes}
    ),
    "gke ubuntu": lambda **changes: gke_target(image="UBUNTU_CONTAINERD", **changes),
}
SHARINGS = {
    "whole": Sharing(),
    "time-slicing": Sharing(slicing=Slicing("time-slicing", 4, fail_requests_greater_than_one=True)),
    "mps": Sharing(slicing=Slicing("mps", 4)),
    "mig single": Sharing(mig=MigCut("1g.5gb", "single")),
    "mig mixed": Sharing(mig=MigCut("1g.5gb", "mixed")),
    "mig and time-slicing": Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 2)),
}
ASKED = ("auto", "helm", "operator", "cloud", "dra", "none")
OWNED = "ours"
"""Not a stranger: counted by the labels of the nodes."""


def node(name: str, **changes: object) -> NodeView:
    marks = {OWNER_LABEL: "ml-platform", POOL_LABEL: "a100mig"}
    made = NodeView(name, marks, (), {}, {}, {"Ready": "True"}, "Ubuntu 24.04.3 LTS", "2026-11-01T00:00:00Z")
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


PRESENT: dict[str, tuple[Snapshot, str]] = {
    "nothing": (Snapshot(), ""),
    "our chart": (installed([desire(pool="other")]), OWNED),
    "our operator": (operating([operated(pool="other", sharing=SHARINGS["mig single"])]), OWNED),
    "another release of the chart": (Snapshot(daemonsets=(chart_release(),)), "everywhere"),
    "a static manifest": (Snapshot(daemonsets=(STATIC,)), "everywhere"),
    "another operator": (Snapshot(daemonsets=(OPERATOR,)), "operator"),
    "another operator without nodes yet": (Snapshot(cluster_policies=("cluster-policy",)), "operator"),
    "somebody's own build": (Snapshot(daemonsets=(OWN_BUILD,)), "everywhere"),
    "gke's plugin": (Snapshot(daemonsets=(GKE,)), "gke"),
    "bottlerocket's plugin on the pool's nodes": (
        Snapshot(nodes=(node("node-1", os_image="Bottlerocket OS 1.57.0", allocatable={"nvidia.com/gpu": "8"}),)),
        "bottlerocket",
    ),
    "the service of aks on the pool's nodes": (
        Snapshot(nodes=(node("node-1", conditions={"Ready": "True", "UnhealthyNvidiaDevicePlugin": "False"}),)),
        "aks",
    ),
    "the driver of dra": (Snapshot(daemonsets=(dra_release(),), device_classes=("gpu.nvidia.com",)), "everywhere"),
}
"""What is there, and on whose nodes it runs besides ours."""


@dataclass(frozen=True)
class End:
    """How it ends: what stands against it, or the nodes' advertisers."""

    refusals: tuple[Finding, ...]
    advertisers: tuple[str, ...]


def end(target: Target, seen: Snapshot, strangers: str) -> End:
    """Go the way of a plan, and count at its end."""
    provider = load_provider(target.cluster.provider)
    stack = provider.stack(target)
    choice = choose_release([(target, stack)], operator_live=has_operator(seen))
    outcome = decide_owner(target, stack, choice).outcome
    errors = [problem for problem in provider.check(target) if problem.severity == "error"]
    if isinstance(outcome, Finding) or errors:
        return End((*errors, *([outcome] if isinstance(outcome, Finding) else [])), ())
    desired = provider.desired(target, outcome, promise_of(target))
    release = plan_release([desired], seen)
    found = [*release.diagnostics, *check_advertisers(find_advertisers(seen, [desired]), [desired])]
    refusals = tuple(problem for problem in found if problem.severity == "error")
    return End(refusals, () if refusals else tuple(advertisers(desired, seen, strangers, choice.release)))


def advertisers(desired: Desired, seen: Snapshot, strangers: str, release: str) -> Iterator[str]:
    """Count what registers nvidia.com/* on a node of this pool, or publishes its GPUs."""
    if runs_by_itself(desired):
        yield "cloud"
    if desired.labels.get("gpukube.io/advertiser") == "chart" and release == "chart":
        yield "chart"
    if desired.labels.get("gpukube.io/advertiser") == "dra":
        yield "dra"
    operator = release == "operator" or has_operator(seen)
    if desired.ownership.operator_values is not None:
        operator = False  # its plugin is off
    if operator and desired.labels.get("nvidia.com/gpu.deploy.operands") != "false":
        yield "operator"  # it goes to every NVIDIA node that is not labeled so
    on_nodes = strangers in ("bottlerocket", "aks") and not runs_by_itself(desired)
    by_label = strangers == "operator" and desired.labels.get("nvidia.com/gpu.deploy.operands") != "false"
    if strangers == "everywhere" or on_nodes or by_label:
        yield "stranger"


def runs_by_itself(desired: Desired) -> bool:
    """Return whether the cloud runs a plugin there: docs of the three clouds, by what is sent to them."""
    request: Any = desired.create.params
    if desired.create.service == "eks":
        data = b64decode(request["launchTemplate"]["LaunchTemplateData"].get("UserData", "")).decode()
        is_off = "[settings.kubelet-device-plugins.nvidia]\nenabled = false" in data
        return str(request["nodegroup"]["amiType"]).startswith("BOTTLEROCKET_") and not is_off
    if desired.create.service == "aks":
        profile = request["body"]["properties"].get("gpuProfile", {})
        return bool(profile.get("nvidia", {}).get("managementMode") == "Managed")
    return bool(request["nodePool"]["config"]["labels"].get("gke-no-default-nvidia-gpu-device-plugin") != "true")


def targets(image: str) -> Iterator[Target]:
    for sharing in SHARINGS.values():
        for requested in ASKED:
            yield IMAGES[image](sharing=sharing, plugin_owner=requested)


@pytest.mark.parametrize("there", PRESENT)
@pytest.mark.parametrize("image", IMAGES)
def test_owners_when_anything_is_asked_anywhere_then_one_advertiser_or_a_refusal(image: str, there: str) -> None:
    seen, strangers = PRESENT[there]
    for target in targets(image):
        ended = end(target, seen, strangers)
        case = f"{image}, {target.sharing}, {target.plugin_owner}, {there}"
        if ended.refusals:
            assert all(refusal.fix for refusal in ended.refusals), case
        elif target.plugin_owner == "none":
            assert ended.advertisers in ((), ("stranger",)), f"{case}: {ended.advertisers}"
        else:
            assert len(ended.advertisers) == 1, f"{case}: {ended.advertisers}"


ANSWERS = {
    ("eks al2023", "whole", "auto", "nothing"): "chart",
    ("eks al2023", "whole", "helm", "nothing"): "chart",
    ("eks al2023", "whole", "operator", "nothing"): "operator",
    ("eks al2023", "mig single", "auto", "nothing"): "operator",
    ("eks al2023", "whole", "auto", "our operator"): "operator",
    ("eks al2023", "whole", "none", "our operator"): "",
    ("eks al2023", "mig single", "auto", "our chart"): "release-migration",
    ("eks al2023", "whole", "helm", "our operator"): "release-migration",
    ("eks al2023", "whole", "auto", "a static manifest"): "foreign-advertiser",
    ("eks al2023", "whole", "none", "a static manifest"): "stranger",
    ("eks al2023", "whole", "auto", "another operator"): "foreign-advertiser",
    ("eks al2023", "whole", "dra", "nothing"): "dra",
    ("eks al2023", "mig single", "dra", "nothing"): "dra",
    ("eks al2023", "whole", "dra", "a static manifest"): "foreign-advertiser",
    ("eks al2023", "whole", "dra", "the driver of dra"): "foreign-advertiser",
    ("eks al2023", "whole", "dra", "our operator"): "dra",
    ("eks bottlerocket", "whole", "dra", "nothing"): "dra",
    ("eks bottlerocket", "mig single", "dra", "nothing"): "owner",
    ("aks ubuntu", "mig single", "dra", "nothing"): "dra",
    ("aks container linux", "whole", "dra", "nothing"): "owner",
    ("aks ubuntu, driver of the operator", "mig mixed", "dra", "nothing"): "dra",
    ("gke cos", "whole", "dra", "nothing"): "dra",
    ("gke ubuntu", "mig single", "dra", "nothing"): "owner",
    ("gke ubuntu, driver of the operator", "whole", "dra", "nothing"): "owner",
    ("eks al2023", "whole", "cloud", "nothing"): "owner",
    ("eks bottlerocket", "mig single", "auto", "nothing"): "cloud",
    ("eks bottlerocket", "whole", "auto", "our operator"): "cloud",
    ("eks bottlerocket", "whole", "helm", "nothing"): "owner",
    ("eks bottlerocket", "whole", "none", "nothing"): "eks-bottlerocket-plugin",
    ("aks ubuntu", "whole", "auto", "nothing"): "chart",
    ("aks ubuntu", "whole", "operator", "nothing"): "operator",
    ("aks ubuntu", "mig mixed", "auto", "nothing"): "chart",
    ("aks ubuntu", "mig mixed", "operator", "nothing"): "owner",
    ("aks ubuntu", "mig single", "auto", "our operator"): "owner",
    ("aks ubuntu", "whole", "cloud", "nothing"): "cloud",
    ("aks ubuntu", "whole", "cloud", "our operator"): "cloud",
    ("aks container linux", "whole", "operator", "nothing"): "owner",
    ("aks ubuntu, driver of the operator", "whole", "auto", "nothing"): "operator",
    ("aks ubuntu, driver of the operator", "mig mixed", "auto", "our operator"): "operator",
    ("aks ubuntu, driver of the operator", "whole", "helm", "nothing"): "owner",
    ("aks ubuntu, driver of the operator", "whole", "none", "nothing"): "owner",
    ("gke cos", "whole", "auto", "nothing"): "cloud",
    ("gke cos", "mig single", "auto", "gke's plugin"): "cloud",
    ("gke cos", "whole", "none", "gke's plugin"): "",
    ("gke cos", "whole", "helm", "nothing"): "owner",
    ("gke cos", "whole", "operator", "nothing"): "operator",
    ("gke cos", "mig mixed", "operator", "nothing"): "operator",
    ("gke ubuntu", "time-slicing", "operator", "nothing"): "operator",
    ("gke ubuntu, driver of the operator", "whole", "auto", "nothing"): "operator",
    ("gke ubuntu, driver of the operator", "whole", "cloud", "nothing"): "owner",
    ("gke cos, driver of the operator", "whole", "auto", "nothing"): "gke-driver-owner",
    ("gke ubuntu", "whole", "auto", "a static manifest"): "foreign-advertiser",
}  # fmt: skip
"""Rows that a reader of the clouds' documentation would name: the advertiser, or the code of the refusal."""


@pytest.mark.parametrize("case", ANSWERS, ids=" | ".join)
def test_owners_when_the_documentation_says_who_then_the_same(case: tuple[str, str, str, str]) -> None:
    image, sharing, requested, there = case
    target = IMAGES[image](sharing=SHARINGS[sharing], plugin_owner=requested)
    ended = end(target, *PRESENT[there])
    said = ended.refusals[0].code if ended.refusals else "".join(ended.advertisers)
    assert said == ANSWERS[case]


@pytest.mark.parametrize("owner", ["cloud", "operator", "none"])
@pytest.mark.parametrize("image", IMAGES)
def test_owners_when_a_driver_is_asked_for_then_there_is_one_or_a_refusal(image: str, owner: str) -> None:
    for target in targets(image):
        requested = replace(target, driver_owner=owner)  # type: ignore[arg-type]  # table data
        provider = load_provider(requested.cluster.provider)
        stack = provider.stack(requested)
        outcome = decide_owner(requested, stack, choose_release([(requested, stack)])).outcome
        if isinstance(outcome, Finding):
            assert "; or " in outcome.fix
        else:
            assert outcome.driver == owner
            allowed = {"cloud": ("cloud", "chart", "operator", "dra", "none"), "operator": ("operator", "dra")}
            own = image.startswith("gke") and requested.plugin_owner == "dra"  # Google's installer, by the user
            assert outcome.advertiser in allowed.get(owner, ("dra",) if own else ("cloud", "none"))


@given(
    cloud=st.sampled_from(("eks", "aks", "gke")),
    pools=st.lists(
        st.tuples(st.sampled_from(tuple(IMAGES)), st.sampled_from(tuple(SHARINGS)), st.sampled_from(ASKED)), max_size=5
    ),
    live=st.booleans(),
)
def test_owners_when_pools_share_a_cluster_then_one_release_whatever_their_order(
    cloud: str, pools: list[tuple[str, str, str]], *, live: bool
) -> None:
    made = [
        IMAGES[image](sharing=SHARINGS[sharing], plugin_owner=requested)
        for image, sharing, requested in pools
        if image.startswith(cloud)
    ]
    facts = [(target, load_provider(cloud).stack(target)) for target in made]
    choice = choose_release(facts, operator_live=live)
    assert choose_release(facts[::-1], operator_live=live).release == choice.release
    answers = [decide_owner(target, stack, choice).outcome for target, stack in facts]
    served = [answer for answer in answers if isinstance(answer, Ownership)]
    assert {answer.advertiser for answer in served} & {"chart", "operator"} <= {choice.release}
    assert not choice.claimed_by or not any(answer.advertiser == "operator" for answer in served), "its plugin is off"
    for answer in served:
        is_ours = answer.operated
        kept_off = answer.labels.get("nvidia.com/gpu.deploy.operands") == "false"
        assert not choice.operator or is_ours != kept_off, "the operator goes to all nodes but those kept off"
