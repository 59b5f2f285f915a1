"""GKE pools with members that few specs have: the import keeps each of them, and a replacement carries them over."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from gpukube import api
from gpukube.core.jsontree import tree
from gpukube.spec.loading.load import load_specs
from gpukube_gke.pool.members import POOL_MEMBERS
from tests.changes.configurations import Configuration
from tests.changes.imports import look, require_import
from tests.changes.test_imported import make_node_pools
from tests.changes.world import spec

if TYPE_CHECKING:
    from tests.changes.world import Document, World

Json = dict[str, Any]
ALWAYS: Json = {
    "initialNodeCount": 1,
    "locations": ["us-central1-a"],
    "management": {"autoRepair": True, "autoUpgrade": True},
    "upgradeSettings": {"maxSurge": 1},
}


def l4(config: Json | None = None, **more: object) -> Json:
    gpu = {"acceleratorCount": "1", "acceleratorType": "nvidia-l4"}
    return {**ALWAYS, "config": {"machineType": "g2-standard-8", "accelerators": [gpu], **(config or {})}, **more}


H100 = {"acceleratorCount": "1", "acceleratorType": "nvidia-h100-80gb"}
TDX = {"enabled": True, "confidentialInstanceType": "TDX"}
SOAKS: Json = {
    "standardRolloutPolicy": {"batchNodeCount": 1, "batchSoakDuration": "60s"},
    "nodePoolSoakDuration": "600s",
}
POOLS: dict[str, Json] = {
    "gconf": l4({"machineType": "a3-highgpu-1g", "accelerators": [H100], "spot": True, "confidentialNodes": TDX}),
    "gsys": l4(
        {
            "kubeletConfig": {"cpuManagerPolicy": "static", "podPidsLimit": "4096", "imageMaximumGcAge": "1h"},
            "linuxNodeConfig": {"sysctls": {"net.core.somaxconn": "4096"}, "hugepages": {"hugepageSize2m": 512}},
        }
    ),
    "gbg": l4(upgradeSettings={"maxSurge": 1, "strategy": "BLUE_GREEN", "blueGreenSettings": SOAKS}),
    "gboot": l4({"advancedMachineFeatures": {"threadsPerCore": 1, "enableNestedVirtualization": True}}),
    "gts": l4({"metadata": {"owner": "me", "disable-legacy-endpoints": "true"}}),
    "gmig": l4(
        {
            "machineType": "a2-highgpu-1g",
            "accelerators": [
                {"acceleratorCount": "1", "acceleratorType": "nvidia-tesla-a100", "gpuPartitionSize": "1g.5gb"}
            ],
        },
        management={"autoUpgrade": True},
    ),
    "gnr": l4({"shieldedInstanceConfig": {"enableSecureBoot": True}}, management={"autoUpgrade": True}),
    "gdisk": l4(
        {
            "bootDisk": {
                "diskType": "hyperdisk-balanced",
                "sizeGb": "200",
                "provisionedIops": "6000",
                "provisionedThroughput": "500",
            },
            "diskType": "hyperdisk-balanced",
            "diskSizeGb": 200,
            "localNvmeSsdBlockConfig": {"localSsdCount": 1},
        },
        placementPolicy={"type": "COMPACT"},
    ),
}
"""Pools that gcloud or a client made; an import of 2026-11 lost something of each without a word."""
WRITTEN = {
    "gconf": "confidential: true",
    "gsys": "imageMaximumGcAge: 1h",
    "gbg": "batchSoakDuration: 60s",
    "gboot": "enableNestedVirtualization: true",
    "gts": "owner: me",
    "gmig": "autoRepair: false",
    "gnr": "enableIntegrityMonitoring: false",
    "gdisk": "localStorage: raw",
}


def made(world: World) -> str:
    world.reset()
    world.make("gke", "train")
    make_node_pools(world, {name: Configuration("", body) for name, body in POOLS.items()})
    return require_import(world, "gke", "train", len(POOLS))


def test_pools_when_imported_then_the_spec_has_every_member_that_a_person_chose(world: World) -> None:
    text = made(world)
    pools = parts(text)
    assert "not in this spec" not in text
    assert {name for name, words in WRITTEN.items() if words not in pools[name]} == set()


def parts(text: str) -> dict[str, str]:
    """The text of each pool, by its name."""
    found = [part.partition("\n") for part in text.split("- name: ")[1:]]
    return {name: rest for name, _, rest in found}


def test_pools_when_replaced_from_their_import_then_the_new_ones_have_all_members(world: World) -> None:
    text = made(world)
    specs = load_specs(["-"], stdin=io.StringIO(text), environ={})
    (plan,) = api.plan(api.prepare(specs), world.run(), api.Scope(adopt=True, adopt_managed=True))
    live = {pool.name: pool for pool in look(world, "gke", "train").live}
    for pool in plan.pools:
        assert pool.desired is not None
        assert POOL_MEMBERS.lost(live[pool.name], pool.desired) == ()
        sent = tree(pool.desired.create.params, "nodePool", "config")
        for name in ("confidentialNodes", "kubeletConfig", "linuxNodeConfig", "advancedMachineFeatures"):
            asked = POOLS[pool.name]["config"].get(name)
            assert asked is None or sent[name] == asked


def test_pool_when_a_client_makes_it_plain_then_no_member_is_chosen_but_what_it_sent(world: World) -> None:
    world.reset()
    world.make("gke", "train")
    gpu = {"acceleratorCount": "1", "acceleratorType": "nvidia-l4"}
    body = {"initialNodeCount": 1, "config": {"machineType": "g2-standard-8", "accelerators": [gpu]}}
    make_node_pools(world, {"plain": Configuration("", body)})
    (live,) = [pool for pool in look(world, "gke", "train").live if pool.name == "plain"]
    paths = {one.path for one in POOL_MEMBERS.chosen(live)}
    assert paths == {"nodes.count", "zones", "instanceType", "gpu.model", "gpu.count"}


def test_pool_when_its_replacement_would_lose_metadata_then_refused_without_showing_values(world: World) -> None:
    world.reset()
    clusters = {"here": world.make("gke", "train")}

    def document(metadata: dict[str, str]) -> Document:
        pool = {"name": "gts", "instanceType": "g2-standard-8", "nodes": {"count": 1}}
        return spec("ml", clusters, [{**pool, "gke": {"config": {"metadata": metadata}}}])

    assert [report.error for report in world.create(document({"owner": "canary"})).values()] == [None]
    changed = document({"other": "secret"})
    refused, accepted = (
        world.pools(changed, accept_loss=given)["gts"] for given in ((), ("gke.config.metadata.owner",))
    )
    assert (refused.action, {one.code for one in refused.diagnostics}) == ("replace", {"members-lost"})
    assert [one.severity for one in accepted.diagnostics] == ["warning"]
    shown = [one.seen for one in refused.diagnostics] + [str(one.change) for one in refused.changes]
    assert any("gke.config.metadata.owner" in one for one in shown)
    assert not [one for one in shown if "canary" in one or "secret" in one]
