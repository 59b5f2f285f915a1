"""User data of others that is full of secrets: no command shows, logs, saves or exports one of them.

Imported, adopted, planned, compared, saved, changed, diagnosed, exported, and replaced: the live pool has it in the
end, and nothing else does.
"""

from __future__ import annotations

import base64
import logging
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from gpukube.core.jsontree import tree
from gpukube.core.values import Settings
from gpukube_eks.live.access import AwsClients, Identity
from gpukube_sandbox import daemon
from tests.live_groups import user_data_of, wait_until_active
from tests.unit.gpukube_eks.samples import ACCOUNT, REGION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube

SECRET: Final = "c4n4ry-S3cret"
LINUX: Final = f"""MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="BOUNDARY"

--BOUNDARY
Content-Type: text/x-shellscript; charset="us-ascii"; name="{SECRET}.sh"

#!/bin/bash
export TOKEN={SECRET}
--BOUNDARY
Content-Type: application/{SECRET}

{SECRET}
--BOUNDARY
Content-Type: application/node.eks.aws

---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata: {{name: {SECRET}}}
spec:
  instance:
    environment: {{default: {{TOKEN: {SECRET}}}}}
    localStorage: {{strategy: RAID0, mountPath: /{SECRET}}}
  kubelet:
    config: {{cpuManagerPolicy: static, clusterDomain: {SECRET}}}
    flags: ["--node-labels=token={SECRET}"]
--BOUNDARY--
"""
ROCKET: Final = f"""# {SECRET}
[settings.kubernetes]
bootstrap-token = "{SECRET}"
[settings.kubernetes.node-labels]
"{SECRET}" = "{SECRET}"
[settings.host-containers.admin]
enabled = true
user-data = "{SECRET}"
[settings.container-registry]
credentials = [{{registry = "docker.io", password = "{SECRET}"}}]
"""
ADDRESS: Final = f"eks:{ACCOUNT}/{REGION}/train"
CHANGED: Final = ("--set", "pools.mine.maxPodsPerNode=64")
REPLACED: Final = ("--set", "pools.mine.instanceType=g4dn.2xlarge")
OUTPUTS: Final = ("json", "markdown", "junit", "terraform-json", "github")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work where everything that is written is found again."""
    place = tmp_path / "work"
    (place / "tmp").mkdir(parents=True)
    monkeypatch.chdir(place)
    monkeypatch.setattr(tempfile, "tempdir", str(place / "tmp"))
    return place


@pytest.fixture
def aws(sandbox: SandboxInfo) -> Iterator[AwsClients]:
    """Somebody else's client."""
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, "train")
    identity = Identity(dummy=ACCOUNT, secret=sandbox.secret)
    with closing(AwsClients(identity, REGION, sandbox.aws_url, Settings())) as clients:
        yield clients


def encoded(secret: str) -> tuple[str, ...]:
    """Return what a secret looks like within base64, at each of the three places that it may begin at."""
    found = [base64.b64encode(b"x" * before + secret.encode()).decode() for before in range(3)]
    return tuple(text.rstrip("=")[4:-2] for text in found)


FORMS: Final = (SECRET, *encoded(SECRET))


def leaks(place: Path, *said: str) -> list[str]:
    """Name where the secret came out."""
    files = [file for root in (place, Path.home()) for file in root.rglob("*") if file.is_file()]
    found = [str(file) for file in files if any(form.encode() in file.read_bytes() for form in FORMS)]
    return found + [text for text in said if any(form in text for form in FORMS)]


def make_theirs(aws: AwsClients, image: str, user_data: str, name: str = "mine") -> None:
    """Make a group with a launch template of somebody else's."""
    data = {"UserData": base64.b64encode(user_data.encode()).decode()}
    aws.ec2.create_launch_template(LaunchTemplateName="theirs", LaunchTemplateData=data)
    beside = tree(aws.eks.describe_nodegroup(clusterName="train", nodegroupName="system"), "nodegroup")
    aws.eks.create_nodegroup(
        clusterName="train",
        nodegroupName=name,
        launchTemplate={"name": "theirs", "version": "1"},
        amiType=image,
        instanceTypes=["g4dn.xlarge"],
        scalingConfig={"minSize": 1, "maxSize": 1, "desiredSize": 1},
        nodeRole=beside["nodeRole"],
        subnets=beside["subnets"],
    )
    wait_until_active(aws, name)


@pytest.mark.parametrize(
    ("image", "user_data", "kept"),
    [
        ("AL2023_x86_64_NVIDIA", LINUX, LINUX.removesuffix("--BOUNDARY--\n")),
        ("BOTTLEROCKET_x86_64_NVIDIA", ROCKET, f'bootstrap-token = "{SECRET}"\n[settings.kubernetes.node-labels]'),
    ],
    ids=["al2023", "bottlerocket"],
)
def test_user_data_when_it_holds_secrets_then_they_come_out_nowhere(  # noqa: PLR0913, PLR0917 - fixtures and a table
    gpukube: Gpukube,
    workplace: Path,
    aws: AwsClients,
    caplog: pytest.LogCaptureFixture,
    image: str,
    user_data: str,
    kept: str,
) -> None:
    caplog.set_level(logging.DEBUG, "gpukube")
    make_theirs(aws, image, user_data)
    spec = workplace / "pools.yaml"

    def run(*words: str, codes: tuple[int, ...] = (0,)) -> str:
        ran = gpukube(*words)
        assert ran.code in codes, (words, ran.out, ran.err)
        assert leaks(workplace, ran.out, ran.err, caplog.text) == [], words
        return ran.out

    spec.write_text(imported := run("pool", "import", "--cluster", ADDRESS))
    assert "# user data of others stays:" in imported
    run("-v", "pool", "import", "--cluster", ADDRESS)
    run("pool", "apply", "-f", "pools.yaml", "--adopt", "--yes", "--allow-disruption")
    run("doctor", "-f", "pools.yaml", codes=(0, 1, 3))
    run("doctor", "-f", "pools.yaml", "-o", "json", codes=(0, 1, 3))
    run("pool", "get", "mine", "-f", "pools.yaml", "-o", "json")
    run("pool", "list", "-f", "pools.yaml", "-o", "json")
    run("-v", "pool", "list", "-f", "pools.yaml")
    run("pool", "export", "--cluster", ADDRESS, "--to", "terraform")
    for target in ("terraform", "aws", "eksctl", "karpenter"):
        run("pool", "export", "-f", "pools.yaml", "--to", target)
    for name, how in (("changed", CHANGED), ("replaced", REPLACED)):
        assert "user data of others stays" in run("-v", "pool", "plan", "-f", "pools.yaml", *how)
        run("-v", "pool", "plan", "diff", "-f", "pools.yaml", *how, codes=(2,))
        run("pool", "plan", "-f", "pools.yaml", *how, "--out", f"{name}.json", "--allow-disruption")
        for output in OUTPUTS:
            run("pool", "plan", "-f", "pools.yaml", *how, "-o", output)
        run("pool", "plan", "diff", "-f", "pools.yaml", *how, "-o", "json", codes=(2,))
    run("-v", "pool", "apply", "changed.json", "--events", "events.jsonl")
    changed = user_data_of(aws, "mine")
    assert kept in changed
    run("-v", "pool", "apply", "-f", "pools.yaml", *CHANGED, *REPLACED, "--yes", "--replace", "surge", "-o", "json")
    assert user_data_of(aws, "mineb") == changed
    back = ("--set", "pools.mine.instanceType=g4dn.xlarge", "--replace", "recreate")
    run("-v", "pool", "apply", "-f", "pools.yaml", *CHANGED, *back, "--yes", "-o", "json")
    assert user_data_of(aws, "mine") == changed
    exported = run("pool", "export", "--cluster", ADDRESS, "--to", "terraform")
    assert "ignore_changes = [user_data]" in exported  # the launch template is gpukube's now


def test_user_data_when_it_does_not_allow_a_change_then_the_error_shows_no_secret(
    gpukube: Gpukube, workplace: Path, aws: AwsClients
) -> None:
    make_theirs(aws, "AL2023_x86_64_NVIDIA", LINUX)
    (workplace / "pools.yaml").write_text(gpukube("pool", "import", "--cluster", ADDRESS).out)
    assert gpukube("pool", "apply", "-f", "pools.yaml", "--adopt", "--yes").code == 0

    refused = ("-f", "pools.yaml", "--set", "pools.mine.kubelet.cpuManagerPolicy=none")
    for words in (("plan", *refused, "-o", "json"), ("apply", *refused, "--yes", "--allow-disruption")):
        ran = gpukube("-v", "pool", *words)
        assert "user data of others sets kubelet.config.cpuManagerPolicy" in ran.out + ran.err
        assert leaks(workplace, ran.out, ran.err) == []
        assert ran.code != 0 or words[0] == "plan"
    assert user_data_of(aws, "mine") == LINUX


@pytest.mark.parametrize("how", ["surge", "recreate"])
def test_saved_plan_when_user_data_of_others_changed_since_then_stale(
    gpukube: Gpukube, workplace: Path, aws: AwsClients, how: str
) -> None:
    """The file has a digest only, which is enough to see that it is no longer the same."""
    make_theirs(aws, "AL2023_x86_64_NVIDIA", LINUX)
    (workplace / "pools.yaml").write_text(gpukube("pool", "import", "--cluster", ADDRESS).out)
    assert gpukube("pool", "apply", "-f", "pools.yaml", "--adopt", "--yes").code == 0
    saving = ("pool", "plan", "-f", "pools.yaml", *REPLACED, "--replace", how, "--out", "plan.json")
    assert gpukube(*saving).code == 0
    changed = LINUX.replace("export TOKEN", "export OTHER")
    made = aws.ec2.create_launch_template_version(
        LaunchTemplateName="theirs",
        SourceVersion="1",
        LaunchTemplateData={"UserData": base64.b64encode(changed.encode()).decode()},
    )
    use_version(aws, "mine", str(tree(made, "LaunchTemplateVersion")["VersionNumber"]))

    ran = gpukube("pool", "apply", "plan.json")

    assert ran.code != 0
    assert "error[stale" in ran.err, ran.err
    assert leaks(workplace, ran.out, ran.err) == []
    assert user_data_of(aws, "mine") == changed


def use_version(aws: AwsClients, group: str, version: str) -> None:
    """Move a group to a version of its launch template."""
    own = {"name": "theirs", "version": version}
    aws.eks.update_nodegroup_version(clusterName="train", nodegroupName=group, launchTemplate=own)
    wait_until_active(aws, group)
