"""Every sharing on every cloud, side by side in one cluster: created, proven, probed; the plan empty, nothing ill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from gpukube.errors import SpecError
from tests.changes.world import address, differences, prepare, spec
from tests.e2e.scenarios import CUTTABLE, REFUSED, WARDS, cut, one
from tests.e2e.stage import totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube import api
    from tests.changes.world import Document
    from tests.e2e.stage import Stage

SCENARIOS = [(key, name) for key, ward in WARDS.items() for name, _ in ward.devices()]


@dataclass(frozen=True)
class Made:
    """All clusters with their pools.

    Attributes:
        created: What create said of each, by "cluster/pool".
        verified: What verify with a probe said of each.
    """

    stage: Stage
    documents: Mapping[str, Document]
    created: Mapping[str, api.PoolReport]
    verified: Mapping[str, api.PoolReport]


@pytest.fixture(scope="module")
def made(stage: Stage) -> Made:
    """Create all clusters at once."""
    for key, ward in WARDS.items():
        stage.make(ward.cloud, key)
    documents = {key: ward.document(key) for key, ward in WARDS.items()}
    created = stage.create_all(*documents.values())
    return Made(stage, documents, created, stage.verify(*documents.values(), probe=True))


@pytest.mark.parametrize(("key", "name"), SCENARIOS, ids=[f"{key}-{name}" for key, name in SCENARIOS])
def test_pool_when_created_then_its_devices_are_there_and_a_pod_gets_one(key: str, name: str, made: Made) -> None:
    devices = WARDS[key].pools[name][1]
    created, verified = made.created[f"{key}/{name}"], made.verified[f"{key}/{name}"]
    assert (created.outcome, str(created.error or ""), totals(created)) == ("done", "", devices)
    assert (str(verified.error or ""), totals(verified)) == ("", devices)
    assert verified.proof is not None
    assert verified.proof.probe is not None
    assert (verified.proof.probe.status, verified.proof.probe.message != "") == ("passed", True)


@pytest.mark.parametrize("key", WARDS)
def test_cluster_when_all_its_pools_are_there_then_plan_is_empty_and_the_doctor_finds_nothing(
    key: str, made: Made
) -> None:
    (plan,) = plans = made.stage.plan(made.documents[key])
    assert differences(plans) == []
    titles = {"chart": "the device-plugin chart", "operator": "the GPU Operator", "": ""}
    release = plan.release if plan.release and plan.release.revision else None
    assert (release.kind.title if release else "") == titles[WARDS[key].release]
    made.stage.require_healthy(made.documents[key], usual=WARDS[key].usual)


@pytest.mark.parametrize("name", REFUSED)
def test_pool_when_its_cloud_cannot_do_it_then_refused_with_what_to_write(name: str) -> None:
    refusal = REFUSED[name]
    document = spec(
        "refused", {"c": address(refusal.cloud, "c")}, [{"name": "p", "nodes": {"count": 1}, **refusal.pool}]
    )
    with pytest.raises(SpecError) as caught:
        prepare(document)
    assert [(item.code, item.fix) for item in caught.value.diagnostics] == [(refusal.code, refusal.fix)]


def test_operator_when_pools_of_both_strategies_are_asked_of_it_then_refused_with_the_way_out(stage: Stage) -> None:
    clusters = {"both": stage.make("eks", "both")}
    pools = [one(name, CUTTABLE["eks"], sharing=cut("eks", name)) for name in ("single", "mixed")]
    with pytest.raises(SpecError) as caught:
        prepare(spec("both", clusters, pools))
    assert [(item.code, item.fix) for item in caught.value.diagnostics if item.severity == "error"] == [
        ("operator-strategy", "write strategy: single, or move them to another cluster")
    ]
