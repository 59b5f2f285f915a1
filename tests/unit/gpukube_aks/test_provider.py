"""The pure half as a whole: it needs no SDK, judges every feature, and says what the nodes bring."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpukube.core.values import Settings
from gpukube.errors import MissingExtra
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.provider import load_provider
from gpukube_aks import AksProvider
from tests.builders import CLUSTER, make_target
from tests.unit.features import require_judged

PLAN = """
import sys
from tests.builders import make_target, CLUSTER
from gpukube.core.fields import ZONES
from gpukube.core.values import Change, Ownership, Promise
from gpukube_aks import AksProvider
from gpukube_aks.pool.observe import observe_pool
provider, target = AksProvider(), make_target()
provider.check(target), provider.abilities(), provider.stack(target)
desired = provider.desired(target, Ownership("cloud", "chart", "c", {}, ""), Promise({}, target.nodes))
observed = observe_pool({"name": "a100mig", "properties": desired.create.params["body"]["properties"]})
provider.requests.delete(CLUSTER, observed), provider.requests.recreate(desired, observed)
provider.update_row(Change(ZONES, 1, 2))
print(sorted({name.partition(".")[0] for name in sys.modules} & {"azure", "msal", "requests", "yaml", "httpx"}))
"""


def test_planning_when_done_in_full_loads_no_sdk() -> None:
    root = Path(__file__).parents[3]
    environment = {"PYTHONPATH": f"{root}:{root / 'providers'}"}
    done = subprocess.run(
        [sys.executable, "-c", PLAN], cwd=root, env=environment, capture_output=True, text=True, check=False
    )

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_connect_when_the_sdk_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "azure"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("gpukube_aks.live.client", "gpukube_aks.live.access", "gpukube_aks.live.failures"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "azure", None)

    with pytest.raises(MissingExtra) as caught:
        AksProvider().connect(CLUSTER, Settings())

    assert "pip install 'gpukube[aks]'" in caught.value.render()


def test_provider_when_looked_up_by_its_name_is_this_one() -> None:
    assert isinstance(load_provider("aks"), AksProvider)
    assert load_provider("aks").name == "aks"


def test_abilities_when_compared_with_the_features_judge_all() -> None:
    abilities = AksProvider().abilities()

    require_judged(abilities)
    assert all(ability.reason for ability in abilities.values() if ability.fidelity != "exact")
    assert all(ability.substitute for ability in abilities.values() if ability.fidelity == "emulated")


def test_pools_at_once_when_asked_is_one() -> None:
    assert AksProvider().extras.pools_at_once == 1


@pytest.mark.parametrize(
    ("changes", "driver", "advertiser", "cut_by"),
    [
        ({}, "cloud", "none", "none"),
        ({"sharing": Sharing(MigCut("1g.5gb", "single"))}, "cloud", "none", "cloud"),
        ({"plugin_owner": "helm"}, "cloud", "none", "none"),
        ({"plugin_owner": "cloud"}, "cloud", "cloud", "none"),
        ({"driver_owner": "none", "plugin_owner": "none"}, "none", "none", "none"),
        ({"driver_owner": "none", "plugin_owner": "cloud"}, "cloud", "cloud", "none"),
    ],
)
def test_stack_when_asked_says_what_the_nodes_bring(
    changes: dict[str, object], driver: str, advertiser: str, cut_by: str
) -> None:
    stack = AksProvider().stack(make_target("Standard_ND96asr_v4", **changes))

    assert (stack.driver, stack.advertiser, stack.cut_by) == (driver, advertiser, cut_by)
    assert stack.source.startswith("docs: aks/")
