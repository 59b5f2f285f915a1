"""Exports node groups as AWS CLI commands: the two calls of gpukube's creation, member by member.

The commands' options are the calls' members in a different spelling, and each accepts JSON (docs: cli/latest/
userguide/cli-usage-parameters-types), so that no part of a request is lost.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import shell_command
from gpukube_eks.export.request import group_of, placement_of, template_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.exporting import ExportedPool, Losses
    from gpukube.core.values import ClusterRef

_RENAMED: Final = {"version": "kubernetes-version"}
"""Members with another option name: `--version` is the AWS CLI's own (aws/aws-cli
awscli/customizations/argrename.py)."""
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def write_script(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return a script that creates the launch templates and node groups."""
    account, region = cluster.identity["account"], cluster.identity["region"]
    losses.note(f"the account: the AWS CLI needs credentials of {account} (aws sts get-caller-identity)")
    losses.note("waiting: create-nodegroup returns at once; to wait: aws eks wait nodegroup-active")
    place = ("--region", region)
    commands = [
        "".join(
            shell_command(("aws", "ec2", "create-placement-group"), place, *_options(group))
            for group in (placement_of(pool),)
            if group
        )
        + shell_command(("aws", "ec2", "create-launch-template"), place, *_options(template_of(pool)))
        + shell_command(("aws", "eks", "create-nodegroup"), place, *_options(group_of(pool)))
        for pool in pools
    ]
    return "set -eu\n\n" + "\n".join(commands)


def _options(members: Mapping[str, object]) -> list[tuple[str, ...]]:
    return [(f"--{_flag(name)}", *_words(value)) for name, value in members.items()]


def _flag(member: str) -> str:
    return _RENAMED.get(member, _CAPITAL.sub("-", member).lower())


def _words(value: object) -> list[str]:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    return [value if isinstance(value, str) else json.dumps(value)]
