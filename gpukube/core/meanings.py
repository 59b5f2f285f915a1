"""What a cloud's errors mean: the shape of a problem and of a meaning, and the look-up that all providers share.

In scope: values and look-up. Out of scope: any cloud's codes and texts (its `meanings`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.errors import NotAllowed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.errors import GpukubeError

_LONGEST_QUOTE: Final = 400
"""Characters of a cloud's text that are shown: some clouds send pages."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a cloud words it; what a cloud leaves out is empty.

    Attributes:
        code: Exception, canonical code, or code of a health issue.
        text: Its text.
        condition: Code of the pool's condition ("GCE_STOCKOUT"), which is more exact than `code`.
        is_late: An operation or the pool reports it, long after the request was accepted.
        status: HTTP status of the answer.
        request_id: The cloud's id of the request, for its support.
    """

    code: str
    text: str
    condition: str = ""
    is_late: bool = False
    status: int = 0
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a cloud's error means, as an error of ours.

    Attributes:
        codes: Whole-word pattern of the cloud's codes; "" for any.
        text: Pattern that is searched in the text, where the code says too little.
        error: The class: who acts differently on it catches it.
        seen, fix: As in a finding.
        code: Of the finding; "" for the class's own.
    """

    codes: str = ""
    text: str = ""
    error: type[GpukubeError]
    seen: str
    fix: str
    code: str = ""

    def error_at(self, where: str, *, note: str = "", why: str = "", fix: str = "", lacks: str = "") -> GpukubeError:
        """Make the error.

        Args:
            where: The pool or cluster.
            note: Follows the message in brackets: the cloud's code.
            why: The cloud's own words.
            fix: A more exact one than the meaning's.
            lacks: The permission that is missing, where this is about one: what asks for less than the cloud's whole
                answer, a quota or a price, shows the message alone.
        """
        seen = f"{self.seen}: {lacks}" if lacks and issubclass(self.error, NotAllowed) else self.seen
        seen = f"{seen} ({note})" if note else seen
        return self.error(seen, where=where, fix=fix or self.fix, why=why, code=self.code)


def find_meaning(table: Iterable[Meaning], code: str, text: str) -> Meaning | None:
    """Find the first meaning whose patterns fit; None if there is none."""
    fitting = (row for row in table if re.fullmatch(row.codes or ".*", code) and re.search(row.text, text))
    return next(fitting, None)


def missing_permission(text: str, form: re.Pattern[str]) -> str:
    """Find the permission that a cloud's refusal names last: the first of several is what is allowed; "" for none."""
    named = form.findall(text)
    return str(named[-1]) if named else ""


def quote(cloud: str, text: str) -> str:
    """Quote a cloud's own words, on one line and of a length that can be read; "" if it has none."""
    line = " ".join(text.split()).rstrip(".")
    return f"{cloud} says: {line[:_LONGEST_QUOTE]}" if line else ""
