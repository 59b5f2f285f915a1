"""AKS pools with profiles that another tool set: imported whole, and lost by no replacement without consent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube import api
from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import Arm
from tests.changes.imports import imported_from, look
from tests.changes.world import Pool, World, differences, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

T4: Pool = {"name": "p", "instanceType": "Standard_NC4as_T4_v3", "nodes": {"count": 1}}
PROFILES: Mapping[str, Any] = {
    "messageOfTheDay": "aGVsbG8=",
    "networkProfile": {"allowedHostPorts": [{"portStart": 80, "portEnd": 80, "protocol": "TCP"}]},
    "localDNSProfile": {"mode": "Required"},
    "kubeletConfig": {"cpuCfsQuota": False},
}
"""Profiles that imports of earlier versions dropped."""
PATHS = {
    "aks.messageOfTheDay",
    "aks.networkProfile.allowedHostPorts",
    "aks.localDNSProfile.mode",
    "kubelet.cpuCFSQuota",
}
NATIVE = {key: value for key, value in PROFILES.items() if key != "kubeletConfig"}
RECREATE = api.Consent(allow_disruption=True, replace="recreate")


def live(world: World) -> dict[str, Any]:
    (pool,) = (one for one in look(world, "aks", "train").live if one.name == "p")
    properties: Any = pool.native["properties"]
    return {key: properties.get(key) for key in PROFILES}


def test_replacement_when_it_would_lose_profiles_then_refused_until_kept_or_accepted(world: World) -> None:
    world.reset()
    clusters = {"here": world.make("aks", "train")}
    world.create(spec("keepers", clusters, [T4]))
    daemon.tamper(world.info, "train", "p", **PROFILES)

    smaller = spec("keepers", clusters, [{**T4, "maxPodsPerNode": 60}])
    plan = world.pools(smaller)["p"]
    assert (plan.action, {one.path for one in plan.lost}) == ("replace", PATHS)
    (found,) = (one for one in plan.diagnostics if one.code == "members-lost")
    assert found.severity == "error"
    assert "aGVsbG8=" not in str(found)

    kept = spec("keepers", clusters, [{**T4, "maxPodsPerNode": 60, "kubelet": {"cpuCFSQuota": False}, "aks": NATIVE}])
    assert world.pools(kept)["p"].lost == ()
    assert str(world.apply(kept, consent=RECREATE)["p"].error or "") == ""
    assert live(world) == PROFILES

    accepted = tuple(sorted(PATHS))
    assert (
        str(
            world.apply(
                spec("keepers", clusters, [T4 | {"maxPodsPerNode": 30}]), consent=RECREATE, accept_loss=accepted
            )["p"].error
            or ""
        )
        == ""
    )
    assert set(live(world).values()) == {None}


def test_profiles_when_changed_in_place_then_those_that_reimage_nodes_come_last_together(world: World) -> None:
    world.reset()
    clusters = {"here": world.make("aks", "train")}
    world.create(spec("keepers", clusters, [T4]))
    ports = {"allowedHostPorts": [{"portStart": 443, "portEnd": 443, "protocol": "TCP"}]}
    native = {
        "networkProfile": ports,
        "localDNSProfile": {"mode": "Required"},
        "artifactStreamingProfile": {"enabled": True},
    }
    edited = spec("keepers", clusters, [{**T4, "labels": {"team": "a"}, "aks": native}])

    plan = world.pools(edited)["p"]
    bodies = [request.params["body"]["properties"] for request in plan.requests]  # type: ignore[index]  # a PUT
    assert ["localDNSProfile" in body for body in bodies] == [False, True]
    assert ["artifactStreamingProfile" in body for body in bodies] == [False, True]
    assert bodies[0]["networkProfile"] == ports
    assert str(world.apply(edited, consent=api.Consent(allow_disruption=True))["p"].error or "") == ""
    assert differences(world.plan(edited)) == []


def test_import_when_no_spec_can_say_a_member_then_a_comment_names_it(world: World) -> None:
    world.reset()
    world.make("aks", "train")
    with Arm(world.info) as arm:
        arm.create(
            "kata", {"count": 1, "vmSize": "Standard_NC40ads_H100_v5", "mode": "System", "messageOfTheDay": "aGk="}
        )
    text = imported_from(world, "aks", "train").text.replace("\n  # ", " ")

    assert "not in this spec, and a replacement would not have it: aks.mode" in text
    assert "messageOfTheDay: aGk=" in text
