"""`gpukube explain owner`: the answer, the facts it stands on, what is set, what else could be asked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from lightkube.codecs import load_all_yaml

from gpukube.rule_ids import rule_label
from tests.cli.harness import EXAMPLES, Gpukube
from tests.cli.test_refusals import STATIC_PLUGIN

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.harness import Cluster

SINGLE = EXAMPLES / "aks-mig-single.yaml"
Part = dict[str, Any]  # a pool of the document that -o json prints


def told(gpukube: Gpukube, *words: str, code: int = 0, sandbox: bool = False) -> list[Part]:
    shown = gpukube("explain", "owner", *words, "-o", "json", sandbox=sandbox)
    assert shown.code == code, shown.err
    document = shown.json()
    assert document["kind"] == "OwnerExplanation"
    parts: list[Part] = document["pools"]
    return parts


def settings(part: Part, kind: str) -> dict[str, object]:
    return {item["name"]: item["value"] for item in part["settings"] if item["kind"] == kind}


def edited(directory: Path, example: str, **fields: object) -> Path:
    spec = yaml.safe_load((EXAMPLES / example).read_text("utf-8"))
    spec["pools"][0] |= fields
    path = directory / "pools.yaml"
    path.write_text(yaml.safe_dump(spec), "utf-8")
    return path


ASKED = {"auto", "helm", "operator", "cloud", "dra", "none"}
EXAMPLE_ANSWERS = {
    "aks-mig-single.yaml": ("chart", "chart", {"body.properties.gpuInstanceProfile": "MIG1g"}),
    "eks-mig.yaml": ("operator", "operator-cuts", {"nodegroup.amiType": "AL2023_x86_64_NVIDIA"}),
    "eks-bottlerocket-mig.yaml": ("cloud", "cloud", {"nodegroup.amiType": "BOTTLEROCKET_x86_64_NVIDIA"}),
    "eks-dra.yaml": ("dra", "dra-kept-off", {"nodegroup.amiType": "AL2023_x86_64_NVIDIA"}),
    "aks-dra.yaml": ("dra", "dra", {}),
    "gke-dra.yaml": (
        "dra",
        "dra",
        {
            "nodePool.config.accelerators.0.gpuDriverInstallationConfig.gpuDriverVersion": "INSTALLATION_DISABLED",
            "nodePool.config.labels.gke-no-default-nvidia-gpu-device-plugin": "true",
        },
    ),
    "gke-mig.yaml": (
        "cloud",
        "cloud",
        {
            "nodePool.config.accelerators.0.gpuDriverInstallationConfig.gpuDriverVersion": "DEFAULT",
            "nodePool.config.accelerators.0.gpuPartitionSize": "1g.5gb",
        },
    ),
}


@pytest.mark.parametrize("example", EXAMPLE_ANSWERS)
def test_explain_when_offline_then_answer_row_and_fields(example: str, gpukube: Gpukube) -> None:
    advertiser, row, fields = EXAMPLE_ANSWERS[example]
    spec = yaml.safe_load((EXAMPLES / example).read_text("utf-8"))
    (part,) = told(gpukube, spec["pools"][0]["name"], "-f", str(EXAMPLES / example))
    assert (part["devicePlugin"], part["rows"][-1]["row"]) == (advertiser, row)
    assert settings(part, "field") == fields
    assert bool(settings(part, "value")) is (advertiser in ("chart", "operator", "dra"))
    assert all(item["source"] for item in [*part["facts"], *part["rows"]])
    assert {other["asked"] for other in part["alternatives"]} == ASKED - {"dra" if advertiser == "dra" else "auto"}
    assert part["looked"] is False


def test_explain_when_the_operator_cuts_then_the_values_that_make_it_so(gpukube: Gpukube) -> None:
    (part,) = told(gpukube, "a100mig", "-f", str(EXAMPLES / "eks-mig.yaml"))
    values = settings(part, "value")
    assert (values["driver.enabled"], values["toolkit.enabled"], values["migManager.enabled"]) == (False, False, True)
    labels = settings(part, "label")
    assert labels["nvidia.com/mig.config"] == "all-1g.5gb"
    assert f"devicePlugin.config.data.{labels['nvidia.com/device-plugin.config']}" in values


def test_explain_when_refused_then_the_conflict_is_the_answer_and_four(gpukube: Gpukube, tmp_path: Path) -> None:
    spec = edited(tmp_path, "aks-mig-single.yaml", devicePlugin={"owner": "operator"})
    (part,) = told(gpukube, "a100mig", "-f", str(spec), code=4)
    assert part["devicePlugin"] is None
    assert [refusal["code"] for refusal in part["refusals"]] == ["owner"]
    assert "; or " in part["refusals"][0]["fix"]
    by_asked = {other["asked"]: other for other in part["alternatives"]}
    assert (by_asked["auto"]["devicePlugin"], by_asked["dra"]["devicePlugin"]) == ("chart", "dra")


def test_explain_when_the_provider_refuses_the_same_field_then_told_once(gpukube: Gpukube, tmp_path: Path) -> None:
    spec = edited(tmp_path, "eks-bottlerocket-mig.yaml", devicePlugin={"owner": "none"})
    name = yaml.safe_load(spec.read_text("utf-8"))["pools"][0]["name"]
    (part,) = told(gpukube, name, "-f", str(spec), code=4)
    assert [refusal["code"] for refusal in part["refusals"]] == ["eks-bottlerocket-plugin"]


def test_explain_when_read_by_people_then_sections_and_sources_on_demand(gpukube: Gpukube) -> None:
    plain = gpukube("explain", "owner", "a100mig", "-f", str(SINGLE), sandbox=False).out
    assert re.search(r"^train-aks/a100mig  advertised by the device-plugin chart", plain)
    headings = re.findall(r"^  (\S.*)$", plain, re.MULTILINE)
    assert headings == ["facts", "rules", "sets", "with another devicePlugin.owner"]
    assert "docs: aks/use-nvidia-gpu" not in plain
    assert (
        "docs: aks/use-nvidia-gpu" in gpukube("explain", "owner", "a100mig", "-f", str(SINGLE), "-v", sandbox=False).out
    )


def test_explain_when_the_dra_driver_publishes_then_people_read_so(gpukube: Gpukube) -> None:
    spec = str(EXAMPLES / "eks-dra.yaml")
    plain = gpukube("explain", "owner", "a100mig", "-f", spec, sandbox=False).out
    assert plain.startswith("claims-eks/a100mig  advertised by NVIDIA's DRA driver; the nodes have the driver")
    assert "nvidiaDriverRoot = /" in plain
    assert "devicePlugin.enabled = false" in plain


def test_explain_when_yaml_is_asked_for_then_the_same_document(gpukube: Gpukube) -> None:
    shown = gpukube("explain", "owner", "a100mig", "-f", str(SINGLE), "-o", "yaml", sandbox=False)
    assert yaml.safe_load(shown.out)["pools"] == told(gpukube, "a100mig", "-f", str(SINGLE))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nope", "-f", str(SINGLE)), "no-match"),
        (("a100mig", "-f", str(SINGLE), "--cluster", "nope"), "no-match"),
        (("a100mig",), "no-file"),
        (("a100mig", "-f", str(SINGLE), "-o", "markdown"), "output-format"),
    ],
)
def test_explain_when_the_command_line_is_wrong_then_four(words: tuple[str, ...], said: str, gpukube: Gpukube) -> None:
    shown = gpukube("explain", "owner", *words, sandbox=False)
    assert shown.code == 4
    assert f"error[{rule_label(said)}]" in shown.err


def test_explain_when_several_clusters_then_each_and_those_that_are_meant(gpukube: Gpukube) -> None:
    path = str(EXAMPLES / "three-clouds.yaml")
    parts = told(gpukube, "t4slices", "-f", path)
    assert {part["cluster"]: part["devicePlugin"] for part in parts} == {
        "train-eks": "operator",  # for the sake of the pool that is cut there
        "train-aks": "chart",
        "train-gke": "cloud",
    }
    (one,) = told(gpukube, "t4slices", "-f", path, "--cluster", parts[0]["cluster"])
    assert one == parts[0]


def test_explain_when_live_then_what_is_on_the_cluster(gpukube: Gpukube, cluster: Cluster) -> None:
    del cluster
    (part,) = told(gpukube, "a100mig", "-f", str(SINGLE), "--live", sandbox=True)
    facts = [f"{fact['fact']}: {fact['value']}" for fact in part["facts"]]
    assert part["looked"] is True
    assert any(re.fullmatch(r"release: .*/gpukube-nvidia-device-plugin .* does not exist", fact) for fact in facts)
    assert any(fact.startswith("features: node-feature-discovery") for fact in facts)


def eks_spec(directory: Path, owner: str, pool: str, **fields: object) -> Path:
    spec = yaml.safe_load((EXAMPLES / "eks-mig.yaml").read_text("utf-8"))
    spec["metadata"]["name"] = owner
    spec["pools"] = [{"name": pool, "clusters": ["train-eks"], "nodes": {"count": 1}, **fields}]
    path = directory / f"{owner}.yaml"
    path.write_text(yaml.safe_dump(spec), "utf-8")
    return path


def test_owner_when_another_spec_brought_the_operator_then_it_serves_this_one_too(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    gpukube.made("-f", EXAMPLES / "eks-mig.yaml")
    second = eks_spec(tmp_path, "vision", "t4", instanceType="g4dn.xlarge")
    assert told(gpukube, "t4", "-f", str(second))[0]["devicePlugin"] == "chart"

    (part,) = told(gpukube, "t4", "-f", str(second), "--live", sandbox=True)
    assert (part["devicePlugin"], part["rows"][0]["row"]) == ("operator", "operator-live")
    planned = gpukube("pool", "plan", "-f", second)
    assert "owner   EKS AL2023 has the driver and no plugin; the cluster's one release is the GPU Oper" in planned.out
    created = gpukube.made("-f", second, "-o", "json")
    assert [pool["outcome"] for pool in created.pools()] == ["done"]
    for flags in ((), ("--skip-cluster",)):
        same = gpukube("pool", "plan", "diff", "-f", second, *flags)
        assert (same.code, "no differences" in same.out) == (0, True), same.out


@pytest.mark.parametrize("example", ["aks-timeslicing.yaml", "eks-timeslicing.yaml"])
def test_owner_when_the_operator_is_asked_for_then_its_plugin_serves_and_is_proven(
    example: str, gpukube: Gpukube, tmp_path: Path
) -> None:
    spec = edited(tmp_path, example, devicePlugin={"owner": "operator"})
    created = gpukube.made("-f", spec, "-o", "json")
    assert [pool["outcome"] for pool in created.pools()] == ["done"]
    same = gpukube("pool", "plan", "diff", "-f", spec)
    assert (same.code, same.out) == (0, "no differences\n")


def test_owner_when_none_is_asked_for_beside_the_operator_then_its_operands_stay_off(
    gpukube: Gpukube, tmp_path: Path
) -> None:
    gpukube.made("-f", EXAMPLES / "eks-mig.yaml")
    spec = eks_spec(tmp_path, "vision", "own", instanceType="g4dn.xlarge", devicePlugin={"owner": "none"})
    (part,) = told(gpukube, "own", "-f", str(spec), "--live", sandbox=True)
    assert settings(part, "label") == {"nvidia.com/gpu.deploy.operands": "false"}


def test_explain_when_a_foreign_plugin_is_live_then_it_is_named(gpukube: Gpukube, cluster: Cluster) -> None:
    for item in load_all_yaml(STATIC_PLUGIN):
        cluster.client.create(item)
    (part,) = told(gpukube, "a100mig", "-f", str(SINGLE), "--live", sandbox=True)
    assert [refusal["code"] for refusal in part["refusals"]] == ["foreign-advertiser"]
    assert [fact["value"] for fact in part["facts"] if fact["fact"] == "advertiser"] == [
        "DaemonSet kube-system/nvidia-device-plugin-daemonset: could run on these nodes"
    ]


def test_explain_when_the_clouds_own_plugin_is_live_then_it_is_no_stranger(gpukube: Gpukube) -> None:
    (part,) = told(gpukube, "a100mig", "-f", str(EXAMPLES / "gke-mig.yaml"), "--live", sandbox=True)
    (found,) = [fact["value"] for fact in part["facts"] if fact["fact"] == "advertiser"]
    assert found.endswith("more like it: is the cloud's plugin for these nodes")
    assert part["refusals"] == []
