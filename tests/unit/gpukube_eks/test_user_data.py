"""gpukube's settings next to user data of others: nothing of theirs changes, and nothing secret is shown."""

from __future__ import annotations

import base64
import gzip
import re
import tomllib
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.fields import LOCAL_STORAGE, MAX_PODS, FieldPath, hugepages, kubelet, sysctl
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_eks.userdata import nodeconfig
from gpukube_eks.userdata.merging import (
    UnmergeableError,
    merged_data,
    new_data,
    of_others,
    own_fields,
    read_fields,
    without_settings,
)
from gpukube_eks.userdata.mime import parse_message
from gpukube_eks.userdata.summary import describe_others, scripts_of_others
from tests.unit.gpukube_eks.user_data import RAID, ROCKET, SCRIPT, decode, encode, mime, ours

if TYPE_CHECKING:
    from collections.abc import Mapping

SLICED = Sharing(None, Slicing("time-slicing", 4))
KERNEL = st.dictionaries(
    st.sampled_from(["net.core.somaxconn", "net.ipv4.tcp_rmem", "vm.max_map_count"]).map(sysctl),
    st.sampled_from(["4096", "4096 87380 16777216", "1"]),
)
KUBELET: Mapping[FieldPath, st.SearchStrategy[object]] = {
    kubelet("cpuManagerPolicy"): st.sampled_from(["none", "static"]),
    kubelet("topologyManagerPolicy"): st.sampled_from(["none", "best-effort", "restricted", "single-numa-node"]),
    kubelet("topologyManagerScope"): st.sampled_from(["container", "pod"]),
    kubelet("memoryManagerPolicy"): st.just("None"),
    kubelet("podPidsLimit"): st.integers(1, 10**6),
    kubelet("cpuCFSQuota"): st.booleans(),
    kubelet("imageGCHighThresholdPercent"): st.integers(81, 100),
    kubelet("imageGCLowThresholdPercent"): st.integers(0, 80),
    kubelet("containerLogMaxSize"): st.sampled_from(["50Mi", "1Gi"]),
    kubelet("containerLogMaxFiles"): st.integers(2, 9),
    kubelet("allowedUnsafeSysctls"): st.just(("net.core.somaxconn", "kernel.msg*")),
    MAX_PODS: st.integers(1, 250),
    LOCAL_STORAGE: st.just("ephemeral"),
    hugepages("2Mi"): st.integers(1, 10**5),
}
LINUX_ONLY = {kubelet("cpuCFSQuotaPeriod"): st.sampled_from(["100ms", "50ms"]), hugepages("1Gi"): st.integers(1, 9)}
ROCKET_SETTINGS = st.builds(dict.__or__, st.fixed_dictionaries({}, optional=dict(KUBELET)), KERNEL)
LINUX_SETTINGS = st.builds(dict.__or__, st.fixed_dictionaries({}, optional={**KUBELET, **LINUX_ONLY}), KERNEL)
SETTINGS = st.booleans().flatmap(
    lambda rocket: st.tuples(st.just(rocket), ROCKET_SETTINGS if rocket else LINUX_SETTINGS)
)
THEIRS = {True: [ROCKET, "a = 1", "[[x]]\n[settings.a]\n"], False: [mime(SCRIPT), mime(SCRIPT, SCRIPT, boundary="=x=")]}


# gpukube's own


@given(SETTINGS)
def test_settings_when_written_are_read_back(given_: tuple[bool, dict[FieldPath, object]]) -> None:
    rocket, settings = given_
    written = new_data(ours(settings), rocket=rocket)

    assert read_fields(written, rocket=rocket) == settings
    assert own_fields(written, rocket=rocket) == settings
    assert not of_others(written, rocket=rocket)
    assert describe_others(written, rocket=rocket) == ()


@given(ROCKET_SETTINGS, ROCKET_SETTINGS, st.booleans())
def test_settings_when_changed_without_others_are_written_anew(
    one: dict[FieldPath, object],
    other: dict[FieldPath, object],
    rocket: bool,  # noqa: FBT001 - of hypothesis
) -> None:
    before = new_data(ours(one), rocket=rocket)
    after = new_data(ours(other), rocket=rocket) or (without_settings(rocket=rocket) if before else "")

    assert merged_data(before, ours(other), rocket=rocket) == after


def test_settings_when_none_change_nothing_on_a_node() -> None:
    linux, rocket = (decode(without_settings(rocket=one)) for one in (False, True))

    message = parse_message(linux.encode())
    assert message is not None
    assert [yaml.safe_load(part.content)["spec"] for part in message.parts] == [{}]
    assert tomllib.loads(rocket) == {
        "settings": {"kubelet-device-plugins": {"nvidia": {"device-sharing-strategy": "none"}}}
    }


def test_script_when_run_contains_no_value_that_a_shell_reads() -> None:
    data = decode(new_data(ours({sysctl("net.core.somaxconn"): "1", hugepages("1Gi"): 2}), rocket=False))
    script = data.partition("#!/bin/sh")[2].partition("--gpukube--")[0]

    assert "net.core.somaxconn = 1\nEND\nsysctl --load=/etc/sysctl.d/99-gpukube.conf\n" in script
    assert "hugepages-1048576kB/nr_hugepages - - - - 2\nEND\nsystemd-tmpfiles --create" in script
    assert script.count("<< 'END'") == 2  # quoted: the shell expands nothing


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("net.core.somaxconn", "1\nEND\nreboot"),
        ("net.core.somaxconn", "$(id)"),
        ("net.core.somaxconn", "`id`"),
        ("net.core.somaxconn", "1; id"),
        ("net.core.somaxconn", ""),
        ("net.core.somaxconn", "1 "),
        ("kernel.core_pattern", "|/bin/sh"),
        ("net.core\nEND", "1"),
        ("somaxconn", "1"),
        ("net.ipv4.conf.*.rp_filter", "1"),
    ],
)
def test_parameter_when_not_plain_never_gets_into_a_script(key: str, value: str) -> None:
    assert not nodeconfig.is_safe_sysctl(key, value)
    with pytest.raises(ValueError, match="not safe"):
        new_data(ours({sysctl(key): value}), rocket=False)


def test_period_when_it_is_not_the_default_turns_its_feature_gate_on() -> None:
    data = decode(new_data(ours({kubelet("cpuCFSQuotaPeriod"): "50ms"}), rocket=False))

    assert '      cpuCFSQuotaPeriod: "50ms"\n      featureGates:\n        CustomCPUCFSQuotaPeriod: true\n' in data


# Next to others


@given(SETTINGS, st.data())
def test_merge_when_others_were_there_first_keeps_their_bytes(
    given_: tuple[bool, dict[FieldPath, object]], data: st.DataObject
) -> None:
    rocket, settings = given_
    theirs = data.draw(st.sampled_from(THEIRS[rocket]))
    merged = merged_data(encode(theirs), ours(settings), rocket=rocket)

    assert read_fields(merged, rocket=rocket) == settings
    assert own_fields(merged, rocket=rocket) == settings
    assert of_others(merged, rocket=rocket).decode().removesuffix("\n") == theirs.removesuffix("\n")
    assert merged_data(merged, ours(settings), rocket=rocket) == merged
    removed = merged_data(merged, ours(), rocket=rocket)
    assert decode(removed).removesuffix("\n") == theirs.removesuffix("\n")


def test_merge_when_on_amazon_linux_puts_our_part_last() -> None:
    theirs = mime(SCRIPT, RAID)

    merged = decode(merged_data(encode(theirs), ours({MAX_PODS: 64}), rocket=False))

    assert merged.startswith(theirs.removesuffix("--//--\n"))
    assert merged.endswith("      maxPods: 64\n\n--//--\n")
    assert read_fields(encode(merged), rocket=False) == {
        MAX_PODS: 64,
        kubelet("cpuManagerPolicy"): "static",
        LOCAL_STORAGE: "ephemeral",
    }


def test_merge_when_ours_changes_replaces_only_our_part() -> None:
    one = merged_data(encode(mime(SCRIPT, RAID)), ours({MAX_PODS: 64, sysctl("vm.max_map_count"): "9"}), rocket=False)
    other = merged_data(one, ours({MAX_PODS: 65}), rocket=False)

    assert decode(other) == decode(merged_data(encode(mime(SCRIPT, RAID)), ours({MAX_PODS: 65}), rocket=False))


def test_merge_when_somebody_added_a_part_to_ours_keeps_it() -> None:
    own = decode(new_data(ours({MAX_PODS: 60}), rocket=False))
    theirs = own.replace("--gpukube--\n", f"--gpukube\n{SCRIPT}--gpukube--\n")

    merged = decode(merged_data(encode(theirs), ours({MAX_PODS: 61}), rocket=False))

    assert SCRIPT in merged
    assert "maxPods: 60" not in merged
    assert read_fields(encode(merged), rocket=False) == {MAX_PODS: 61}


def test_merge_when_the_live_value_is_the_same_writes_it_not_again() -> None:
    settings = {kubelet("cpuManagerPolicy"): "static", LOCAL_STORAGE: "ephemeral"}

    assert decode(merged_data(encode(mime(RAID)), ours(settings), rocket=False)) == mime(RAID)


def test_merge_when_compressed_stays_compressed() -> None:
    theirs = base64.b64encode(gzip.compress(mime(SCRIPT, RAID).encode())).decode()

    merged = merged_data(theirs, ours({MAX_PODS: 64}), rocket=False)

    text = gzip.decompress(base64.b64decode(merged)).decode()
    assert text.startswith(mime(SCRIPT, RAID).removesuffix("--//--\n"))
    assert read_fields(merged, rocket=False)[MAX_PODS] == 64
    assert merged_data(theirs, ours(), rocket=False) == theirs


def test_merge_when_on_bottlerocket_adds_marked_lines() -> None:
    merged = decode(merged_data(encode(ROCKET), ours({MAX_PODS: 64}, SLICED), rocket=True))

    assert merged.startswith(ROCKET)
    assert all(line.endswith("  # gpukube") for line in merged.removeprefix(ROCKET).splitlines())
    document = tomllib.loads(merged)["settings"]
    assert document["kubernetes"] == {"node-labels": {"x": "y"}, "max-pods": 64}
    assert document["host-containers"] == {"admin": {"enabled": True}}
    assert document["kubelet-device-plugins"]["nvidia"]["time-slicing"]["replicas"] == 4


@pytest.mark.parametrize(
    ("theirs", "place"),
    [
        ("[settings.kubernetes]\na = 1\n[x]\n", "[settings.kubernetes]\nmax-pods = 64  # gpukube\na = 1\n[x]\n"),
        ("[ settings . kubernetes ] # c\n", "[ settings . kubernetes ] # c\nmax-pods = 64  # gpukube\n"),
        ("[settings]\nkubernetes.a = 1\n", "[settings]\nkubernetes.max-pods = 64  # gpukube\nkubernetes.a = 1\n"),
        ("settings.kubernetes.a = 1", "settings.kubernetes.max-pods = 64  # gpukube\nsettings.kubernetes.a = 1\n"),
        ('x = """\n[settings.kubernetes]\n"""', '"""\n[settings.kubernetes]\n"""\n[settings.kubernetes]  # gpukube\nm'),
    ],
    ids=["its table", "spaces", "dots", "dots at the top", "a text that looks like a table"],
)
def test_merge_when_tables_are_written_otherwise_finds_the_place(theirs: str, place: str) -> None:
    merged = merged_data(encode(theirs), ours({MAX_PODS: 64}), rocket=True)

    assert place in decode(merged)
    assert read_fields(merged, rocket=True) == {MAX_PODS: 64}
    assert decode(merged_data(merged, ours(), rocket=True)).removesuffix("\n") == theirs.removesuffix("\n")


def test_mark_when_in_a_text_of_others_is_kept() -> None:
    theirs = 'x = """\nmax-pods = 1  # gpukube\n"""\n'

    assert decode(merged_data(encode(theirs), ours({MAX_PODS: 64}), rocket=True)).startswith(theirs)


# Collisions and limits

KUBELET_PART = """Content-Type: application/node.eks.aws

spec: {{kubelet: {{{}}}, instance: {{localStorage: {{strategy: Mount}}}}}}
"""


@pytest.mark.parametrize(
    ("theirs", "settings", "names"),
    [
        ("config: {maxPods: 110}", {MAX_PODS: 64}, "kubelet.config.maxPods"),
        ("config: {maxPods: 110, cpuManagerPolicy: none}", {MAX_PODS: 64, kubelet("cpuManagerPolicy"): "static"},
         "kubelet.config.maxPods, kubelet.config.cpuManagerPolicy"),
        ("config: {allowedUnsafeSysctls: [a]}", {kubelet("allowedUnsafeSysctls"): ("b",)},
         "kubelet.config.allowedUnsafeSysctls"),
        ("flags: [--max-pods=110, --v=2]", {MAX_PODS: 64}, "kubelet.flags --max-pods"),
        ("config: 1", {MAX_PODS: 64}, "kubelet.config"),
        ("", {LOCAL_STORAGE: "ephemeral"}, "instance.localStorage.strategy"),
    ],
    ids=["scalar", "two", "list", "flag", "not a map", "local disks"],
)  # fmt: skip
def test_merge_when_a_node_config_has_another_value_is_refused_by_name(
    theirs: str, settings: dict[FieldPath, object], names: str
) -> None:
    with pytest.raises(UnmergeableError) as caught:
        merged_data(encode(mime(SCRIPT, KUBELET_PART.format(theirs))), ours(settings), rocket=False)

    assert caught.value.seen == f"user data of others sets {names}, to another value"
    assert "110" not in caught.value.seen + caught.value.fix + caught.value.why


def test_merge_when_others_have_kubelet_flags_is_no_collision() -> None:
    theirs = mime(KUBELET_PART.format("flags: [--node-labels=a=b]"))

    assert "maxPods: 64" in decode(merged_data(encode(theirs), ours({MAX_PODS: 64}), rocket=False))


@pytest.mark.parametrize(
    ("theirs", "settings", "sharing", "names"),
    [
        ("[settings.kubernetes]\nmax-pods = 110\nx = 1", {MAX_PODS: 64}, Sharing(), "settings.kubernetes.max-pods"),
        ('[settings.kernel.sysctl]\n"vm/nr_hugepages" = "1"', {hugepages("2Mi"): 2}, Sharing(), "hugepages.2Mi"),
        ('[settings.kernel.hugepages.static.2Mi]\ncount = "1"', {hugepages("2Mi"): 2}, Sharing(), "hugepages.2Mi"),
        ("[settings.kubelet-device-plugins.nvidia]\ndevice-sharing-strategy = 'mps'\n[x]", {}, Sharing(),
         "sharing.mps.replicas"),
        ("[settings.kubelet-device-plugins.nvidia]\ndevice-sharing-strategy = 'mps'\n[x]", {}, SLICED,
         "settings.kubelet-device-plugins.nvidia.device-sharing-strategy"),
        ("settings.kubernetes = 1", {MAX_PODS: 64}, Sharing(), "settings.kubernetes.max-pods"),
    ],
    ids=["key", "other spelling", "newer setting", "sharing that the spec lacks", "another sharing", "not a table"],
)  # fmt: skip
def test_merge_when_bottlerocket_has_the_key_is_refused_by_name(
    theirs: str, settings: dict[FieldPath, object], sharing: Sharing, names: str
) -> None:
    with pytest.raises(UnmergeableError, match=rf"^user data of others sets {re.escape(names)}"):
        merged_data(encode(theirs), ours(settings, sharing), rocket=True)


@pytest.mark.parametrize(
    ("theirs", "rocket", "text"),
    [
        ("#!/bin/sh\n", False, "User data was not in the MIME multipart format."),
        ("apiVersion: node.eks.aws/v1alpha1\n", False, "User data was not in the MIME multipart format."),
        ("echo hello\n", True, "User data was not in the TOML format."),
        (mime(SCRIPT), True, "User data was not in the TOML format."),
        (mime("Content-Type: application/node.eks.aws\n\nspec: {[}\n"), False, "a NodeConfig of others cannot be read"),
        ("settings = {kubernetes = {x = 1}}\n", True, "in user data of others there is no place for keys"),
        ('[settings."a.b"]\nx = 1\n', True, "a quoted key in a table header"),
        ('x = "a \\"b\\""\n', True, "an escaped quote"),
        ("'a \"b\"' = 1\n", True, "a quote within a quoted key"),
        ("x = [1, 0.5]\n", True, "an array of mixed types"),
        (mime("Content-Type: text/x-shellscript\n\n" + "x" * 16300 + "\n"), False, "the user data would have"),
    ],
)
def test_merge_when_its_form_does_not_allow_it_is_refused(theirs: str, *, rocket: bool, text: str) -> None:
    with pytest.raises(UnmergeableError, match=re.escape(text)):
        merged_data(encode(theirs), ours({MAX_PODS: 64}), rocket=rocket)


@pytest.mark.parametrize("text", [".".join("a" * 7000) + " = 1", "x = " + "[" * 7000, "x = " + "{a=" * 40 + "1"])
def test_merge_when_nested_too_deep_is_refused(text: str) -> None:
    with pytest.raises(UnmergeableError):
        merged_data(encode(text), ours({MAX_PODS: 64}), rocket=True)
    assert read_fields(encode(text), rocket=True) == own_fields(encode(text), rocket=True) == {}
    assert "user data (" in describe_others(encode(text), rocket=True)[0]


@pytest.mark.parametrize("live", ["not base64!", base64.b64encode(b"\x1f\x8bbroken").decode()])
def test_merge_when_unreadable_is_refused(live: str) -> None:
    for rocket in (True, False):
        with pytest.raises(UnmergeableError):
            merged_data(live, ours({MAX_PODS: 64}), rocket=rocket)
        assert read_fields(live, rocket=rocket) == {}
        assert own_fields(live, rocket=rocket) == {}
        assert "user data (" in describe_others(live, rocket=rocket)[0]


# NodeConfig as nodeadm merges it


@pytest.mark.parametrize(
    "content",
    [
        base64.b64encode(b"spec: {kubelet: {config: {podPidsLimit: 9}}}").decode(),
        "spec: {kubelet: {config: {podPidsLimit: 8}}}\n---\nspec: {kubelet: {config: {podPidsLimit: 9}}}",
    ],
    ids=["base64", "documents"],
)
def test_part_when_encoded_is_read_as_nodeadm_does(content: str) -> None:
    text = mime(f"Content-Type: application/node.eks.aws\n\n{content}\n")

    assert read_fields(encode(text), rocket=False) == {kubelet("podPidsLimit"): 9}


def test_parts_when_merged_replace_lists_but_append_flags() -> None:
    parts = [f"Content-Type: application/node.eks.aws\n\nspec: {{kubelet: {{flags: [{x}], l: [{x}]}}}}\n" for x in "ab"]
    message = parse_message(mime(*parts).encode())
    assert message is not None

    assert nodeconfig.merged_config(message.parts) == {"kubelet": {"flags": ["a", "b"], "l": ["b"]}}


def test_parts_when_aliases_repeat_a_map_endlessly_are_merged_at_once() -> None:
    levels = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{p: *a{n - 1}, q: *a{n - 1}}}" for n in range(1, 60))]
    part = "Content-Type: application/node.eks.aws\n\nspec:\n" + "".join(f"  {level}\n" for level in levels)
    itself = "Content-Type: application/node.eks.aws\n\nspec: &a {a: *a, kubelet: {config: {maxPods: 9}}}\n"

    assert read_fields(encode(mime(part, part)), rocket=False) == {}
    assert read_fields(encode(mime(itself, itself)), rocket=False) == {}


# What is shown


def test_summary_when_on_amazon_linux_names_keys_and_hides_values() -> None:
    secret = RAID.replace("cpuManagerPolicy: static", "cpuManagerPolicy: static\n      evictionHard: {a: hunter2}")
    secret = secret.replace("  kubelet:\n", "  instance: {environment: {hunter2: hunter2}}\n  kubelet:\n")
    live = merged_data(
        encode(mime(SCRIPT, secret, "Content-Type: application/hunter2\n\nx\n")), ours({MAX_PODS: 9}), rocket=False
    )

    shown = describe_others(live, rocket=False)

    assert shown == (
        "kubelet.flags: (hidden)",
        "kubelet.config.cpuManagerPolicy: static",
        "kubelet.config.evictionHard: (hidden)",
        "instance.environment: (hidden)",
        "text/x-shellscript (32 bytes, sha256:9622a5ec21dfe054)",
        "part of another type (1 bytes, sha256:2d711642b726b044)",
    )
    assert scripts_of_others(live) == (shown[4],)


def test_summary_when_on_bottlerocket_names_keys_and_hides_values() -> None:
    theirs = f"""{ROCKET}[settings.kubernetes]
api-server = "hunter2"
max-pods = 110
pod-pids-limit = "hunter2"
"hunter 2" = 1
[settings.bootstrap-containers.x]
user-data = "hunter2"
[other]
y = 1
"""

    assert describe_others(encode(theirs), rocket=True) == (
        "settings.kubernetes.node-labels: (hidden)",
        "settings.kubernetes.api-server: (hidden)",
        "settings.kubernetes.max-pods: 110",
        "settings.kubernetes.pod-pids-limit: (hidden)",
        "settings.kubernetes.(hidden): (hidden)",
        "settings.host-containers.admin.enabled: true",
        "settings.bootstrap-containers.x: (hidden)",
    )


@given(st.text(alphabet="hunter2 \n{}[]\"'=:-.#", max_size=80), st.booleans())
def test_summary_when_anything_is_there_shows_no_value(text: str, rocket: bool) -> None:  # noqa: FBT001 - of hypothesis
    shown = " ".join(describe_others(encode(f'{text}\nx = "S3CRET"'), rocket=rocket))

    assert "S3CRET" not in shown


def test_mig_when_bottlerocket_has_settings_of_others_is_beside_them() -> None:
    merged = merged_data(encode(ROCKET), ours({}, Sharing(MigCut("1g.5gb", "single"))), rocket=True)

    assert '"a100.40gb" = "1g.5gb"  # gpukube' in decode(merged)
    assert merged_data(merged, ours({}, Sharing(MigCut("1g.5gb", "single"))), rocket=True) == merged
