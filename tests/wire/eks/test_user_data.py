"""Two writers of one launch template: user data that somebody adds meanwhile is noticed, and never dropped."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import pytest
from botocore.exceptions import ClientError

from gpukube.core.diff import diff_fields
from gpukube.core.jsontree import text, tree, trees
from gpukube.core.values import Operation, Settings
from gpukube.errors import Busy, Moved
from gpukube_eks import EksProvider
from gpukube_eks.live.access import AwsClients, Identity
from gpukube_eks.live.templates import LaunchTemplates
from sandbox_tests.waiting import wait_for
from tests.unit.gpukube_eks.samples import ACCOUNT, REGION, desired_of, eks_target
from tests.unit.gpukube_eks.user_data import SCRIPT, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Desired, Progress
    from gpukube_eks.live.client import EksCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Follow = Callable[[EksCloud, Operation], Progress]

PROVIDER: Final = EksProvider()
TEMPLATE: Final = "gpukube/train/a100mig"
BEFORE: Final = eks_target("g4dn.xlarge", max_pods=60)
AFTER: Final = replace(BEFORE, max_pods=64)


@pytest.fixture
def aws(sandbox: SandboxInfo) -> Iterator[AwsClients]:
    """Somebody else's client."""
    clients = AwsClients(Identity(dummy=ACCOUNT, secret=sandbox.secret), REGION, sandbox.aws_url, Settings())
    yield clients
    clients.close()


@pytest.fixture
def group(cloud: EksCloud, follow: Follow) -> str:
    """A group of gpukube's."""
    assert follow(cloud, cloud.send(cloud.complete(desired_of(BEFORE)).create)).done
    return BEFORE.name


def used_version(aws: AwsClients, group: str) -> tuple[str, str]:
    """Return the version that a group uses, and the user data that its nodes start with."""
    own = tree(aws.eks.describe_nodegroup(clusterName="train", nodegroupName=group), "nodegroup", "launchTemplate")
    version = str(own["version"])
    found = aws.ec2.describe_launch_template_versions(LaunchTemplateId=str(own["id"]), Versions=[version])
    (one,) = trees(found, "LaunchTemplateVersions")
    return version, decode(text(one, "LaunchTemplateData", "UserData"))


def used(aws: AwsClients, group: str) -> str:
    """Return the user data that a group's nodes start with."""
    return used_version(aws, group)[1]


def add_part(aws: AwsClients, group: str, part: str) -> str:
    """Add a version with one more part to the one that the group uses, as a person does; return its number."""
    number, live = used_version(aws, group)
    data = {"UserData": encode(live.replace("--gpukube--\n", f"--gpukube\n{part}--gpukube--\n"))}
    made = aws.ec2.create_launch_template_version(
        LaunchTemplateName=TEMPLATE, SourceVersion=number, LaunchTemplateData=data
    )
    return str(tree(made, "LaunchTemplateVersion")["VersionNumber"])


def use(aws: AwsClients, group: str, version: str) -> None:
    """Move the group to a version, and try again while EKS works on it."""

    def is_taken() -> bool:
        own = {"name": TEMPLATE, "version": version}
        try:
            aws.eks.update_nodegroup_version(clusterName="train", nodegroupName=group, launchTemplate=own)
        except ClientError:
            return False
        return True

    def is_done() -> bool:
        return (
            text(aws.eks.describe_nodegroup(clusterName="train", nodegroupName=group), "nodegroup", "status")
            == "ACTIVE"
        )

    for condition in (is_taken, is_done):
        wait_for(condition, lambda: aws.eks.describe_nodegroup(clusterName="train", nodegroupName=group))


def converge(cloud: EksCloud, desired: Desired, *, at_most: int = 30) -> int:
    """Change the group as the engine does until nothing differs; return how often it had moved."""
    moves = 0
    for _ in range(at_most):
        observed = cloud.pool(desired.target.name)
        assert observed is not None
        changes = diff_fields(desired.fields, observed.fields)
        if not changes and observed.state == "ready":
            return moves
        try:
            operation = Operation(observed.name, "update")
            if changes:
                operation = cloud.send(PROVIDER.requests.update(desired, observed, changes)[0])
        except Moved:
            moves += 1
            continue
        except Busy:
            operation = Operation(observed.name, "update")
        wait_for(lambda done=operation: cloud.poll(done).done, lambda done=operation: cloud.poll(done))  # type: ignore[misc]
    raise AssertionError("it still differs")


@pytest.mark.parametrize("moment", ["before the list", "after the list"])
def test_version_when_somebody_adds_one_meanwhile_is_made_again_from_theirs(  # noqa: PLR0913, PLR0917 - fixtures
    cloud: EksCloud, follow: Follow, aws: AwsClients, group: str, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    del follow
    added: list[str] = []
    name = "_versions" if moment == "before the list" else "_add_version"
    call = cast("Callable[..., object]", getattr(LaunchTemplates, name))

    def meddled(self: LaunchTemplates, *given: object, **which: object) -> object:
        if not added and "Versions" not in which:
            added.append(add_part(aws, group, SCRIPT))
            use(aws, group, added[0])
        return call(self, *given, **which)

    cloud.pool(group)  # the newest version is known before somebody adds one
    monkeypatch.setattr(LaunchTemplates, name, meddled)

    moves = converge(cloud, desired_of(AFTER))

    assert added
    assert moves >= 1
    assert SCRIPT in used(aws, group)
    assert "maxPods: 64" in used(aws, group)


def test_version_when_a_newer_one_is_not_used_is_noticed_once(cloud: EksCloud, aws: AwsClients, group: str) -> None:
    cloud.pool(group)
    add_part(aws, group, SCRIPT)

    assert converge(cloud, desired_of(AFTER)) == 1

    assert "maxPods: 64" in used(aws, group)


@pytest.mark.parametrize("turn", range(3))
def test_writers_when_two_write_at_once_keep_each_others_settings(
    cloud: EksCloud, aws: AwsClients, group: str, turn: int
) -> None:
    """Somebody adds three parts, one after the other, while gpukube changes the maximum pods."""
    parts = [SCRIPT.replace("hunter2", f"number{number}") for number in range(3)]
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for part in parts:
                use(aws, group, add_part(aws, group, part))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for pods in (61 + turn, 64):
        converge(cloud, desired_of(replace(BEFORE, max_pods=pods)))
    writer.join()
    converge(cloud, desired_of(AFTER))

    assert not failed
    data = used(aws, group)
    assert [part in data for part in parts] == [True, True, True]
    assert data.count("maxPods: 64") == data.count("maxPods") == 1
