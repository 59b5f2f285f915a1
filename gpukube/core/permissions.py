"""The permissions that gpukube needs, as values: what one allows and why, and the policies that clouds take.

In scope: the values, and choosing rows of a table. Out of scope: any cloud's permissions (its
`facts.permissions`), those inside a cluster (engine.permissions).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Iterable, Mapping

    from gpukube.core.values import ClusterRef, Desired

PolicyLevel = Literal["plan", "apply"]
Extra = Literal["live-prices", "upgrade", "probe", "migrate-release", "catalog"]

EXTRAS: Final[Mapping[Extra, str]] = {
    "live-prices": "with --live-prices",
    "upgrade": "with --upgrade",
    "probe": "with --probe",
    "migrate-release": "with --migrate-release",
    "catalog": "for gpukube catalog refresh",
}
"""What only some command lines need -> the words for it in `Permission.when`."""
PRINT_POLICY: Final = "gpukube doctor -f SPEC --print-policy apply"
"""The command that prints all that a spec needs, for messages about one thing that is missing."""


def permission_fix(text: str, form: re.Pattern[str]) -> str:
    """Name the permission that a cloud's refusal names last, and the command that prints all; "" where it names none.

    Args:
        text: The refusal.
        form: Finds the permission in it, as its group.
    """
    named = form.findall(text)
    return f"allow {named[-1]}; {PRINT_POLICY} prints all that is needed" if named else ""


@dataclass(frozen=True, slots=True)
class Permission:
    """One permission, and the calls that need it.

    Attributes:
        name: As the cloud writes it: "eks:DescribeCluster".
        purpose: What gpukube does with it, in plain words.
        source: Public source that these calls need it.
        scope: Which resources it is granted on, in the terms of its provider.
        calls: Operations that need it, as the cloud's API names them.
        level: "plan" for what only reads.
        when: Which specs or command lines need it; "" for all. Also by what rows are chosen.
        without: What is different without it; "" where the command fails.
    """

    name: str
    purpose: str
    source: str
    scope: str = ""
    _: KW_ONLY
    calls: tuple[str, ...] = ()
    level: PolicyLevel = "plan"
    when: str = ""
    without: str = ""


@dataclass(frozen=True, slots=True)
class ClusterPools:
    """A cluster, and the pools that the specs declare on it."""

    cluster: ClusterRef
    desired: tuple[Desired, ...]


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """What a policy has to allow.

    Attributes:
        level: Reading only, or changes too.
        extras: Further command lines.
        clusters: All of one cloud.
    """

    level: PolicyLevel
    extras: frozenset[Extra]
    clusters: tuple[ClusterPools, ...]

    def by(self, field: str) -> dict[str, list[ClusterPools]]:
        """Group the clusters by a field that identifies them: their account, subscription or project."""
        found: dict[str, list[ClusterPools]] = {}
        for item in self.clusters:
            found.setdefault(item.cluster.identity[field], []).append(item)
        return dict(sorted(found.items()))

    def choose(self, table: Iterable[Permission], circumstances: Collection[str] = ()) -> tuple[Permission, ...]:
        """Choose what is needed of a table.

        Args:
            table: All permissions of a cloud.
            circumstances: The `when` of rows that these specs need, beside the extras.
        """
        holding = {"", *circumstances, *(EXTRAS[extra] for extra in self.extras)}
        levels = ("plan", "apply") if self.level == "apply" else ("plan",)
        return tuple(row for row in table if row.level in levels and row.when in holding)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPolicy:
    """One policy: the document that a cloud takes, and the command that gives it to the cloud.

    Attributes:
        title: What it is and where it belongs: "IAM policy for account 111122223333".
        place: Account, subscription, project or cluster: "111122223333".
        clusters: Keys of the clusters that it covers.
        file: Name for its file; the ending tells JSON from YAML.
        documents: What stands in it: one document in JSON, one or several in YAML.
        commands: What hands the file to the cloud, and grants it: lines of a shell, with IDENTITY for whom.
        permissions: The rows that it is made of.
        notes: What it does not cover, or grants more widely than gpukube needs.
    """

    title: str
    place: str
    clusters: tuple[str, ...]
    file: str
    documents: tuple[Mapping[str, object], ...]
    commands: tuple[str, ...]
    permissions: tuple[Permission, ...]
    notes: tuple[str, ...] = ()
