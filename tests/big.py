"""Documents of whole fleets: thousands of pools and findings, with characters of several bytes. Must not assert."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.documents import DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = "größer als erlaubt: 許可されていません 🔴 | `x` </details> @everyone <b>"
"""Characters of one to four bytes, one of two units in UTF-16, and everything that formats."""


def copied(name: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(DOCUMENTS[name]))
    return made


def big_plan(pools: int, kind: str = "Plan") -> dict[str, Any]:
    """Plan so many pools: of each ten there is one of each action of the scene, the rest stays as it is."""
    document = copied(kind)
    first, *others = document["clusters"]
    kinds = first["pools"]
    made = []
    for number in range(pools):
        pool = json.loads(json.dumps(kinds[number % len(kinds)]))
        pool["pool"] = pool["name"] = f"pool{number}-ü"
        pool["why"] = f"{pool['why']} {WORDS}"
        made.append(pool)
    document["clusters"] = [{**first, "pools": made}, *others]
    return document


def big_validation(findings: int) -> dict[str, Any]:
    """Report so many findings, the few errors last."""
    document = copied("Validation")
    found = list(findings_of(findings))
    document["errors"] = [{**one, "severity": "error"} for one in found[: findings // 100]]
    document["warnings"] = [{**one, "severity": "warning"} for one in found[findings // 100 : findings // 2]]
    document["hints"] = [{**one, "severity": "hint"} for one in found[findings // 2 :]]
    return document


def findings_of(count: int) -> Iterator[dict[str, Any]]:
    (like, *_) = DOCUMENTS["Validation"]["errors"]
    for number in range(count):
        place = {"file": f"pools/größe-{number % 50}.yaml", "line": number + 1, "column": 3}
        where = f"{place['file']}:{place['line']}:3"
        yield {**like, "where": where, "position": place, "message": f"finding {number}: {WORDS}", "why": WORDS * 2}


def big_report(pools: int) -> dict[str, Any]:
    """Report so many pools, of which each hundredth failed."""
    document = copied("Apply")
    good, bad = document["clusters"][0]["pools"][0], next(
        pool for cluster in document["clusters"] for pool in cluster["pools"] if pool["error"]
    )  # fmt: skip
    made = [{**(good if number % 100 else bad), "pool": f"pool{number}-ü", "message": WORDS} for number in range(pools)]
    document["clusters"][0]["pools"] = made
    return document
