"""The pure half as a whole: what EKS can do, and who does what on its nodes."""

from __future__ import annotations

import sys

import pytest

from gpukube.core.owners import needs_operator, solve_ownership
from gpukube.core.values import Ownership, Settings
from gpukube.errors import MissingExtra
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks import EksProvider
from tests.builders import make_observed
from tests.unit.features import require_judged
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

CUT = Sharing(MigCut("1g.5gb", "single"))
SLICED = Sharing(None, Slicing("time-slicing", 4))


def test_abilities_when_listed_miss_no_feature() -> None:
    abilities = EksProvider().abilities()
    require_judged(abilities)


@pytest.mark.parametrize(
    ("image", "sharing", "advertiser", "operator"),
    [
        ("", Sharing(), "chart", False),
        ("al2023", SLICED, "chart", False),
        ("", CUT, "operator", True),
        ("bottlerocket", Sharing(), "cloud", False),
        ("bottlerocket", SLICED, "cloud", False),
        ("bottlerocket", CUT, "cloud", False),
    ],
)
def test_stack_when_solved_gives_one_advertiser(
    image: str, sharing: Sharing, advertiser: str, operator: bool  # noqa: FBT001 - a table's column
) -> None:  # fmt: skip
    target = eks_target(image=image, sharing=sharing)
    stack = EksProvider().stack(target)

    ownership = solve_ownership(target, stack, operator=needs_operator(target, stack))

    assert isinstance(ownership, Ownership)
    assert (stack.driver, ownership.advertiser, needs_operator(target, stack)) == ("cloud", advertiser, operator)


def test_recreate_when_the_group_itself_failed_deletes_first() -> None:
    desired = desired_of(eks_target())

    assert EksProvider().requests.recreate(desired, make_observed(desired, status="CREATE_FAILED")) is None
    assert EksProvider().requests.follow_up(desired, make_observed(desired)) is None


def test_delete_when_requested_names_group_and_template() -> None:
    request = EksProvider().requests.delete(CLUSTER, make_observed(desired_of(eks_target())))

    assert request.params == {
        "nodegroup": {"clusterName": "train", "nodegroupName": "a100mig"},
        "launchTemplate": {"LaunchTemplateName": "gpukube/train/a100mig"},
    }


def test_connect_when_the_sdk_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gpukube_eks.live.client", raising=False)
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)

    with pytest.raises(MissingExtra) as caught:
        EksProvider().connect(CLUSTER, Settings())

    assert caught.value.diagnostics[0].fix == "pip install 'gpukube[eks]'"
