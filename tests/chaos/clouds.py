"""Creations on EKS and GKE: what each asks of its cloud, which of that changes something, and what it leaves.

In scope: the stories, their undisturbed runs, and what must be true after them. Out of scope: processes
(`stage`), the tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import Aws
from tests.chaos.stage import EXAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.chaos.stage import Ended, Stage

READS = ("Get", "Describe", "List")
"""How the actions of EC2 and STS begin that change nothing; all are a POST to /."""
Json = dict[str, object]


@dataclass(frozen=True)
class Story:
    """One creation.

    Attributes:
        example: File below examples/, without its ending.
        service: Its cloud in the log of requests.
        pool: Name of its pool.
        pools: All pools in the end, with their machines.
        devices: GPUs that are proven.
        releases: Helm releases in the end.
        templates: Launch templates in the end, with their versions.
    """

    example: str
    service: str
    pool: str
    pools: dict[str, int]
    devices: int
    releases: frozenset[str] = frozenset()
    templates: dict[str, int] | None = None

    @property
    def spec(self) -> Path:
        """Its file."""
        return EXAMPLES / f"{self.example}.yaml"

    @property
    def others(self) -> dict[str, int]:
        """Pools that are not ours."""
        return {name: machines for name, machines in self.pools.items() if name != self.pool}


@dataclass(frozen=True)
class Call:
    """One request to a cloud.

    Attributes:
        nth: Number among the cloud's requests, from 1.
        method: HTTP method.
        path: Its path.
        name: Action of EC2, STS and Service Quotas; else method and last part of the path.
    """

    nth: int
    method: str
    path: str
    name: str

    @property
    def is_read(self) -> bool:
        """Whether it changes nothing."""
        return self.method == "GET" or self.name.startswith(READS) or self.path == "/token"


@dataclass(frozen=True)
class Record:
    """An undisturbed run.

    Attributes:
        calls: Its requests to the cloud.
        objects: What Helm has made.
    """

    calls: tuple[Call, ...]
    objects: set[str]

    @property
    def writes(self) -> tuple[Call, ...]:
        """Requests that change something."""
        return tuple(call for call in self.calls if not call.is_read)

    @property
    def before(self) -> int:
        """How many requests there are before the first change."""
        return self.writes[0].nth - 1


STORIES = {
    story.example: story
    for story in (
        Story(
            "eks-timeslicing", "aws", "t4shared", {"system": 1, "t4shared": 2}, 8,
            frozenset({"gpukube-nvidia-device-plugin"}), {"gpukube/train/t4shared": 1},
        ),
        Story(
            "eks-mig", "aws", "a100mig", {"system": 1, "a100mig": 1}, 56,
            frozenset({"gpukube-gpu-operator"}), {"gpukube/train/a100mig": 1},
        ),
        Story("gke-timesharing", "gke", "l4shared", {"default-pool": 1, "l4shared": 2}, 8),
        Story("gke-mig", "gke", "a100mig", {"default-pool": 1, "a100mig": 1}, 7),
    )
}  # fmt: skip


def calls_since(info: SandboxInfo, service: str, after: int = 0) -> tuple[Call, ...]:
    """Requests to a cloud, after one of the whole log."""
    found = [one for one in daemon.requests_since(info, after) if one["service"] == service]
    return tuple(_call(nth, one) for nth, one in enumerate(found, 1))


def _call(nth: int, logged: Json) -> Call:
    method, path, body = str(logged["method"]), str(logged["path"]), logged["body"]
    action = body.get("Action") if isinstance(body, dict) else None
    headers = logged["headers"]
    assert isinstance(headers, dict)
    target = next((value for name, value in headers.items() if name.lower() == "x-amz-target"), "")
    action = action or str(target).rpartition(".")[2]  # of Service Quotas
    return Call(nth, method, path, str(action or f"{method} {path.rpartition('/')[2]}"))


def record(stage: Stage, story: Story) -> Record:
    """Run a creation undisturbed in an empty sandbox."""
    ended = stage.create(story.spec)
    assert ended.code == 0, ended.said
    return Record(calls_since(stage.info, story.service), stage.objects())


def templates(stage: Stage) -> dict[str, int]:
    """All launch templates of the account, and how many versions each has."""
    client = Aws(stage.info).client("ec2")
    names = [one["LaunchTemplateName"] for one in client.describe_launch_templates()["LaunchTemplates"]]
    return {
        name: len(client.describe_launch_template_versions(LaunchTemplateName=name)["LaunchTemplateVersions"])
        for name in names
    }


def require_converged(stage: Stage, ended: Ended, story: Story, undisturbed: Record) -> None:
    """It is proven, nothing is there twice, nothing is left over, and one more run changes nothing."""
    stage.require_polite(ended)
    assert ended.code == 0, ended.said
    assert ended.devices == {"nvidia.com/gpu": story.devices}, ended.said
    _require_state(stage, story, undisturbed)
    releases = stage.releases()
    assert {name for name, _, _ in releases} == story.releases
    assert not [status for _, _, status in releases if status.startswith("pending")], releases
    mark = len(daemon.requests_since(stage.info))
    again = stage.create(story.spec)
    assert again.code == 0, again.said
    assert _outcomes(again) == ["unchanged"], again.said
    assert not [call for call in calls_since(stage.info, story.service, mark) if not call.is_read]
    assert stage.releases() == releases
    _require_state(stage, story, undisturbed)


def _require_state(stage: Stage, story: Story, undisturbed: Record) -> None:
    assert stage.pools() == story.pools
    assert stage.objects() == undisturbed.objects
    if story.templates is not None:
        assert templates(stage) == story.templates
    stage.require_private()


def _outcomes(ended: Ended) -> list[str]:
    return [pool["outcome"] for cluster in json.loads(ended.out)["clusters"] for pool in cluster["pools"]]
