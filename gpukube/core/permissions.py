"""The permissions that gpukube needs: what each one allows and why, and the policies for clouds.

In scope: the values, and selecting rows of a table. Out of scope: any cloud's permissions (its `facts.permissions`),
and those inside a cluster (engine.permissions).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Iterable, Mapping

    from gpukube.core.values import ClusterRef, Desired

PolicyLevel = Literal["plan", "apply"]
Extra = Literal["live-prices", "upgrade", "probe", "migrate-release", "catalog", "capacity", "alternatives"]

EXTRAS: Final[Mapping[Extra, str]] = {
    "live-prices": "with --live-prices",
    "upgrade": "with --upgrade",
    "probe": "with --probe",
    "migrate-release": "with --migrate-release",
    "catalog": "for gpukube catalog refresh",
    "capacity": "for gpukube capacity find, and pool plan --live",
    "alternatives": "for pools with alternatives",
}
"""Options and commands that need more permissions -> their wording in `Permission.when`."""
PRINT_POLICY: Final = "gpukube doctor -f SPEC --print-policy apply"
"""Command that prints everything a spec needs, for messages about one missing permission."""
PRINT_CAPACITY_POLICY: Final = "gpukube doctor -f SPEC --print-policy plan --with capacity"
"""Command that prints what questions about available machines need."""


def permission_fix(text: str, form: re.Pattern[str]) -> str:
    """Return a fix with the last permission in a cloud's refusal; "" if there is none.

    Args:
        text: The refusal.
        form: Pattern with the permission as its group.
    """
    named = form.findall(text)
    return f"allow {named[-1]}; {PRINT_POLICY} prints all that is needed" if named else ""


@dataclass(frozen=True, slots=True)
class Permission:
    """One permission, and the calls that need it.

    Attributes:
        name: The cloud's name: "eks:DescribeCluster".
        purpose: What gpukube uses it for.
        source: Public source that these calls need it.
        scope: Resources on which it is granted, in its provider's terms.
        calls: Operations that need it, as named in the cloud's API.
        level: "plan" if it only reads.
        when: Specs or command lines that need it, "" for all; rows are selected by it.
        without: What changes without it; "" if the command fails.
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
    """A cluster and the pools that the specs declare on it."""

    cluster: ClusterRef
    desired: tuple[Desired, ...]


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """What a policy must allow.

    Attributes:
        level: Only reads, or changes too.
        extras: Additional options and commands.
        clusters: All clusters of one cloud.
    """

    level: PolicyLevel
    extras: frozenset[Extra]
    clusters: tuple[ClusterPools, ...]

    def by(self, field: str) -> dict[str, list[ClusterPools]]:
        """Group the clusters by an identifying field: account, subscription, or project."""
        found: dict[str, list[ClusterPools]] = {}
        for item in self.clusters:
            found.setdefault(item.cluster.identity[field], []).append(item)
        return dict(sorted(found.items()))

    def choose(self, table: Iterable[Permission], circumstances: Collection[str] = ()) -> tuple[Permission, ...]:
        """Return the required permissions of a table.

        Args:
            table: All permissions of a cloud.
            circumstances: The `when` of rows that these specs need, in addition to the extras.
        """
        holding = {"", *circumstances, *(EXTRAS[extra] for extra in self.extras)}
        levels = ("plan", "apply") if self.level == "apply" else ("plan",)
        return tuple(row for row in table if row.level in levels and row.when in holding)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudPolicy:
    """One policy: its document, and the commands that create and grant it.

    Attributes:
        title: Kind and place: "IAM policy for account 111122223333".
        place: Account, subscription, project, or cluster: "111122223333".
        clusters: Keys of the clusters that it covers.
        file: File name; the extension distinguishes JSON from YAML.
        documents: Contents: one document in JSON, one or several in YAML.
        commands: Shell lines that create the policy from the file and grant it to IDENTITY.
        permissions: The rows that it contains.
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
