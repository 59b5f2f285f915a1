"""The pure half as a whole: it needs no SDK, judges every feature, and says what the nodes bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpukube.core.owners import solve_ownership
from gpukube.core.values import Ownership, Settings
from gpukube.errors import Finding, MissingExtra
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.provider import load_provider
from gpukube_gke import GkeProvider
from tests.unit.features import require_judged
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, gke_target

PLAN = """
import sys
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire, gke_target
from gpukube.core.fields import ZONES
from gpukube.core.values import Change
from gpukube_gke.pool.observe import observe_pool
target = gke_target()
PROVIDER.check(target), PROVIDER.abilities(), PROVIDER.stack(target)
desired = desire(target)
observed = observe_pool(desired.create.params["nodePool"])
PROVIDER.requests.delete(CLUSTER, observed), PROVIDER.requests.follow_up(desired, observed)
PROVIDER.update_row(Change(ZONES, (), ("a",)))
print(sorted({name.partition(".")[0] for name in sys.modules} & {"google", "grpc", "proto", "requests", "yaml"}))
"""


def test_planning_when_done_in_full_loads_no_sdk() -> None:
    root = Path(__file__).parents[3]
    environment = {"PYTHONPATH": f"{root}:{root / 'providers'}"}
    done = subprocess.run(
        [sys.executable, "-c", PLAN], cwd=root, env=environment, capture_output=True, text=True, check=False
    )

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_connect_when_the_sdk_is_missing_names_the_extra() -> None:
    program = """
import sys
sys.modules["google.api_core"] = sys.modules["google.cloud"] = sys.modules["google.auth"] = sys.modules["grpc"] = None
from gpukube.core.values import ClusterRef, Settings
from gpukube.errors import MissingExtra
from gpukube_gke import GkeProvider
try:
    GkeProvider().connect(ClusterRef("train-gke", "gke", "train", {}), Settings())
except MissingExtra as error:
    print(error.render())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "pip install 'gpukube[gke]'" in done.stdout, done.stderr


def test_provider_when_looked_up_by_its_name_is_this_one() -> None:
    assert isinstance(load_provider("gke"), GkeProvider)
    assert load_provider("gke").name == "gke"


def test_abilities_when_compared_with_the_features_judge_all() -> None:
    abilities = PROVIDER.abilities()

    require_judged(abilities)
    assert all(ability.reason for ability in abilities.values() if ability.fidelity != "exact")
    assert all(ability.substitute for ability in abilities.values() if ability.fidelity == "emulated")
    assert {name for name, ability in abilities.items() if ability.fidelity == "missing"} == {
        "sharing.mig.layout",
        "sharing.mig.mixed",
        "gpuTaint",
        "instanceTypes",
    }


def test_pools_at_once_when_asked_leaves_room_below_five_operations() -> None:
    assert PROVIDER.extras.pools_at_once == 4


@pytest.mark.parametrize(
    ("changes", "driver", "advertiser", "cut_by"),
    [
        ({}, "cloud", "cloud", "none"),
        ({"sharing": Sharing(MigCut("1g.5gb", "single"))}, "cloud", "cloud", "cloud"),
        ({"plugin_owner": "cloud"}, "cloud", "cloud", "none"),
        ({"driver_owner": "none"}, "none", "cloud", "none"),
        ({"plugin_owner": "none"}, "none", "none", "none"),
    ],
)
def test_stack_when_asked_says_what_the_nodes_bring(
    changes: dict[str, object], driver: str, advertiser: str, cut_by: str
) -> None:
    stack = PROVIDER.stack(gke_target(**changes))

    assert (stack.driver, stack.advertiser, stack.cut_by) == (driver, advertiser, cut_by)
    assert stack.source


@pytest.mark.parametrize(
    ("owner", "advertiser"),
    [("auto", "cloud"), ("cloud", "cloud"), ("none", "none"), ("helm", None)],
)
def test_owner_when_solved_is_gke_or_nobody_of_ours(owner: str, advertiser: str | None) -> None:
    target = gke_target(plugin_owner=owner)
    solved = solve_ownership(target, PROVIDER.stack(target))

    if advertiser is None:
        assert isinstance(solved, Finding)
        assert solved.code == "owner"
    else:
        assert isinstance(solved, Ownership)
        assert (solved.advertiser, solved.labels) == (advertiser, {})


def test_connect_when_the_sandbox_is_asked_for_without_it_is_refused() -> None:
    with pytest.raises(Exception, match="sandbox mode reaches loopback only") as caught:
        PROVIDER.connect(CLUSTER, Settings(sandbox=True))
    assert not isinstance(caught.value, MissingExtra)
