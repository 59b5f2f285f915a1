"""Settings of a live group's nodes: changed and carried next to user data of others (finding S1-2)."""

from __future__ import annotations

import traceback
from dataclasses import replace
from typing import cast

import pytest

from gpukube.core.fields import LOCAL_STORAGE, MAX_PODS, FieldPath, hugepages, kubelet, sysctl
from gpukube.core.jsontree import text, tree
from gpukube.core.plan import plan_pool
from gpukube.core.values import Change, Observed
from gpukube.errors import SpecError
from gpukube.gpu.sharing import Sharing, Slicing
from gpukube_eks import EksProvider
from gpukube_eks.pool.members import POOL_MEMBERS
from gpukube_eks.pool.observe import observe_group, observe_leftover
from gpukube_eks.pool.settings import carried
from gpukube_eks.pool.template import changed_data
from gpukube_eks.pool.translate import KEEP, group_of
from gpukube_eks.pool.updates import find_row
from tests.unit.gpukube_eks.samples import desired_of, eks_target
from tests.unit.gpukube_eks.user_data import RAID, ROCKET, SCRIPT, decode, encode, mime

SLICES = FieldPath("sharing", "timeSlicing", "replicas")


def live_group(user_data: str, **target: object) -> Observed:
    made = desired_of(eks_target(**target))  # type: ignore[arg-type]  # test data
    return observe_group(group_of(made), {"UserData": user_data} if user_data else {"EbsOptimized": True}, {})


def test_change_when_e_efa_was_adopted_keeps_raid_and_cpu_manager() -> None:
    live = live_group(encode(mime(SCRIPT, RAID)))

    data = changed_data(eks_target(max_pods=64), live, {MAX_PODS}, {})

    changed = decode(str(data["UserData"]))
    assert changed.startswith(mime(SCRIPT, RAID).removesuffix("--//--\n"))
    fields = observe_group(live.native, data, {}).fields
    assert (fields[LOCAL_STORAGE], fields[kubelet("cpuManagerPolicy")], fields[MAX_PODS]) == ("ephemeral", "static", 64)


def test_change_when_e_br_was_adopted_keeps_labels_and_admin_container() -> None:
    live = live_group(encode(ROCKET), image="bottlerocket")
    target = eks_target(image="bottlerocket", sharing=Sharing(None, Slicing("time-slicing", 8)))

    data = changed_data(target, live, {SLICES}, {})

    assert decode(str(data["UserData"])).startswith(ROCKET)
    assert observe_group(live.native, data, {}).fields[SLICES] == 8


def test_plan_when_user_data_of_others_stays_names_its_keys() -> None:
    live = live_group(encode(mime(SCRIPT, RAID)))

    row = find_row(Change(MAX_PODS, None, 64), (), live)

    assert row.sentence.endswith(
        "user data of others stays: kubelet.flags: (hidden), kubelet.config.cpuManagerPolicy: static, "
        "instance.localStorage.strategy: RAID0, text/x-shellscript (32 bytes, sha256:9622a5ec21dfe054); "
        "text/x-shellscript (32 bytes, sha256:9622a5ec21dfe054) may change what is written here"
    )
    assert "hunter2" not in str(row)


def test_plan_when_user_data_is_large_says_that_eks_needs_room() -> None:
    live = live_group(encode(mime(SCRIPT + "x" * 13_000 + "\n")))

    assert (
        "bytes, and EKS adds its own part: more than 16384 are refused"
        in find_row(Change(MAX_PODS, None, 64), (), live).sentence
    )


def test_plan_when_only_gpukube_wrote_user_data_says_nothing_of_others() -> None:
    made = desired_of(eks_target(max_pods=60))
    data = cast("dict[str, dict[str, object]]", made.create.params)["launchTemplate"]["LaunchTemplateData"]
    live = observe_group(group_of(made), cast("dict[str, object]", data), {})

    assert "others" not in find_row(Change(MAX_PODS, 60, 64), (), live).sentence


def test_change_when_others_set_the_key_is_refused_at_the_field() -> None:
    live = live_group(encode(mime(RAID)))

    with pytest.raises(SpecError) as caught:
        changed_data(eks_target(kubelet={"cpuManagerPolicy": "none"}), live, {kubelet("cpuManagerPolicy")}, {})

    (found,) = caught.value.diagnostics
    assert found.code == "user-data"
    assert "kubelet.config.cpuManagerPolicy" in found.seen
    assert found.fix


@pytest.mark.parametrize(
    ("image", "theirs"),
    [
        ("", mime("Content-Type: application/node.eks.aws\n\nspec: {token: hunter2, [}\n")),
        ("", "#!/bin/sh\necho hunter2\n"),
        ("", mime(RAID.replace("static", "hunter2"))),
        ("bottlerocket", "token = hunter2\n"),
        ("bottlerocket", 'settings = {kubernetes = {bootstrap-token = "hunter2"}}\n'),
        ("bottlerocket", "hunter2" + "[" * 5000),
        ("bottlerocket", "[settings.kubernetes]\ncpu-manager-policy = 'hunter2'\n[x]\n"),
    ],
)
def test_change_when_refused_shows_no_content_even_in_its_causes(image: str, theirs: str) -> None:
    live = live_group(encode(theirs), image=image)
    target = eks_target(image=image, kubelet={"cpuManagerPolicy": "none"})

    with pytest.raises(SpecError) as caught:
        changed_data(target, live, {kubelet("cpuManagerPolicy")}, {})

    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_change_when_others_format_the_disks_that_are_to_stay_raw_is_refused() -> None:
    live = live_group(encode(mime(RAID)))
    assert live.fields[LOCAL_STORAGE] == "ephemeral"

    with pytest.raises(SpecError, match="localStorage"):
        changed_data(eks_target(local_storage="raw"), live, {LOCAL_STORAGE}, {})


def test_change_when_the_image_is_an_own_one_is_refused() -> None:
    live = live_group(encode("#!/bin/sh\n"))
    live = replace(live, native={**live.native, "amiType": "CUSTOM"})

    with pytest.raises(SpecError, match="names an image"):
        changed_data(eks_target(max_pods=64), live, {MAX_PODS}, {})


SETTINGS: dict[str, object] = {
    "kubelet": {"cpuManagerPolicy": "static", "allowedUnsafeSysctls": ["net.core.somaxconn"]},
    "sysctls": {"net.core.somaxconn": "4096"},
    "hugepages": {"2Mi": 5128},
    "local_storage": "ephemeral",
}


@pytest.mark.parametrize("image", ["", "bottlerocket"])
def test_settings_when_created_are_read_back_without_a_difference(image: str) -> None:
    made = desired_of(eks_target(image=image, **SETTINGS))  # type: ignore[arg-type]  # test data
    data = cast("dict[str, dict[str, object]]", made.create.params)["launchTemplate"]["LaunchTemplateData"]

    live = observe_group(group_of(made), cast("dict[str, object]", data), {})

    above = ("kubelet", "sysctls", "hugepages", "localStorage")
    declared = {path: value for path, value in made.fields.items() if path[0] in above}
    assert {path: value for path, value in live.fields.items() if path[0] in above} == declared
    assert live.written >= {sysctl("net.core.somaxconn"), hugepages("2Mi"), LOCAL_STORAGE}


@pytest.mark.parametrize("image", ["", "bottlerocket"])
def test_setting_when_it_left_the_spec_is_removed_and_the_others_stay(image: str) -> None:
    made = desired_of(eks_target(image=image, max_pods=60, **SETTINGS))  # type: ignore[arg-type]  # test data
    data = cast("dict[str, dict[str, object]]", made.create.params)["launchTemplate"]["LaunchTemplateData"]
    live = observe_group(group_of(made), cast("dict[str, object]", data), {})
    target = eks_target(image=image, **{**SETTINGS, "sysctls": {}})  # type: ignore[arg-type]  # test data

    changed = changed_data(target, live, {sysctl("net.core.somaxconn")}, {})

    now = observe_group(group_of(made), changed, {}).fields
    assert sysctl("net.core.somaxconn") not in now
    assert now == {path: value for path, value in live.fields.items() if path in now}
    assert {MAX_PODS, kubelet("cpuManagerPolicy"), hugepages("2Mi")} <= now.keys()


def test_replacement_when_carried_has_the_user_data_of_others_byte_for_byte() -> None:
    live = live_group(encode(mime(SCRIPT, RAID)))
    desired = desired_of(eks_target("p5.48xlarge", max_pods=64))

    made = carried(desired, live)

    data = decode(text(made.create.params, "launchTemplate", "LaunchTemplateData", "UserData"))
    assert data.startswith(mime(SCRIPT, RAID).removesuffix("--//--\n"))
    assert "maxPods: 64" in data
    assert replace(made, create=desired.create) == desired


@pytest.mark.parametrize("pods", [None, 64], ids=["nothing of ours", "ours"])
@pytest.mark.parametrize(
    ("image", "theirs"), [("", mime(SCRIPT)), ("bottlerocket", "[settings.host-containers.admin]\nenabled=true")]
)
def test_replacement_when_it_carries_user_data_loses_none(image: str, theirs: str, pods: int | None) -> None:
    live = live_group(encode(theirs), image=image)
    desired = desired_of(eks_target("p5.48xlarge", image=image, max_pods=pods))

    assert "UserData" not in [one.wire[-1] for one in POOL_MEMBERS.lost(live, carried(desired, live))]
    assert "UserData" in [one.wire[-1] for one in POOL_MEMBERS.lost(live, desired)]


def test_replacement_when_its_image_is_of_another_family_loses_the_user_data() -> None:
    live = live_group(encode(mime(SCRIPT)))
    desired = desired_of(eks_target(image="bottlerocket"))

    assert "UserData" in [one.wire[-1] for one in POOL_MEMBERS.lost(live, carried(desired, live))]
    assert "UserData" not in [
        one.wire[-1]
        for one in POOL_MEMBERS.chosen(
            live_group(
                text(
                    desired_of(eks_target(max_pods=60)).create.params,
                    "launchTemplate",
                    "LaunchTemplateData",
                    "UserData",
                )
            )
        )
    ]


def owned(live: Observed) -> Observed:
    target = eks_target()
    return replace(live, owner=target.owner, pool=target.pool, copy=desired_of(target).copy)


def test_plan_when_a_pool_is_replaced_says_what_it_takes_over_and_keeps_it_before_the_deletion() -> None:
    live = owned(live_group(encode(mime(SCRIPT, RAID))))
    desired = desired_of(eks_target("p5.48xlarge"))

    plan = plan_pool(EksProvider(), desired, [live])

    assert [request.operation for request in plan.requests] == [KEEP, "delete_nodegroup", "create_nodegroup"]
    assert "user data of others stays: kubelet.flags: (hidden)" in plan.why
    assert plan.replacement is not None
    successor = plan.replacement.successor
    assert successor is not None
    for made in (plan.desired, successor):
        assert made is not None
        data = decode(text(made.create.params, "launchTemplate", "LaunchTemplateData", "UserData"))
        assert data == mime(SCRIPT, RAID)


def test_plan_when_a_replaced_pool_cannot_take_over_user_data_is_refused() -> None:
    live = owned(live_group(encode(mime(RAID))))
    desired = desired_of(eks_target("p5.48xlarge", kubelet={"cpuManagerPolicy": "none"}))

    plan = plan_pool(EksProvider(), desired, [live])

    assert [problem.code for problem in plan.diagnostics if problem.severity == "error"] == ["user-data"]


def test_plan_when_only_a_template_is_left_takes_over_its_user_data() -> None:
    made = carried(desired_of(eks_target("p5.48xlarge")), live_group(encode(mime(SCRIPT))))
    template = tree(made.create.params, "launchTemplate")
    tags = tree(template, "TagSpecifications", 0)["Tags"]
    left = observe_leftover({"LaunchTemplateName": template["LaunchTemplateName"], "Tags": tags})
    left = replace(left, native={**left.native, "launchTemplateData": template["LaunchTemplateData"]})

    plan = plan_pool(EksProvider(), desired_of(eks_target("p5.48xlarge")), [left])

    assert [request.params for request in plan.requests] == [made.create.params]


@pytest.mark.parametrize("name", ["theirs", "gpukube/train/a100mig"])
def test_bottlerocket_when_the_form_is_gpukubes_is_of_the_owner_of_the_template(name: str) -> None:
    live = live_group(encode("[settings.kubernetes]\nmax-pods = 60\npod-pids-limit = 9\n"), image="bottlerocket")
    data = {"UserData": text(live.native, "launchTemplateData", "UserData")}

    group = {**live.native, "launchTemplate": {"name": name}}

    assert observe_group(group, data, {}).written == ({kubelet("podPidsLimit")} if name != "theirs" else set())
    lost = POOL_MEMBERS.lost(observe_group(group, data, {}), desired_of(eks_target(image="bottlerocket")))
    assert {"maxPodsPerNode", "kubelet.podPidsLimit"} <= {one.path for one in lost}
    spec = desired_of(eks_target(image="bottlerocket", max_pods=60, kubelet={"podPidsLimit": 9}))
    assert not {"maxPodsPerNode", "kubelet.podPidsLimit"} & {one.path for one in POOL_MEMBERS.lost(live, spec)}


def test_replacement_when_nothing_is_of_others_stays_as_it_is() -> None:
    desired = desired_of(eks_target("p5.48xlarge", max_pods=64))

    assert carried(desired, live_group("")) is desired
    own = text(desired.create.params, "launchTemplate", "LaunchTemplateData", "UserData")
    assert carried(desired, live_group(own)) is desired


def test_replacement_when_another_image_family_reads_no_such_user_data_has_none() -> None:
    desired = desired_of(eks_target(image="bottlerocket"))

    assert carried(desired, live_group(encode(mime(SCRIPT)))) is desired


def test_replacement_when_others_set_the_key_is_refused() -> None:
    live = live_group(encode(mime(RAID)))

    with pytest.raises(SpecError, match="cpuManagerPolicy"):
        carried(desired_of(eks_target(kubelet={"cpuManagerPolicy": "none"})), live)
