"""Maps a cloud's errors to gpukube's: the shapes of both, and the lookup that all providers share.

In scope: values and lookup. Out of scope: any cloud's codes and texts (its `meanings`).
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
"""Maximum number of characters shown of a cloud's text; some clouds send pages."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a cloud reports it; fields that the cloud omits are empty.

    Attributes:
        code: Exception, canonical code, or code of a health issue.
        text: Text of the error.
        condition: Code of the pool's condition ("GCE_STOCKOUT"), more precise than `code`.
        is_late: Whether an operation or the pool reports it, long after the request was accepted.
        status: HTTP status of the response.
        request_id: The cloud's id of the request, for its support team.
    """

    code: str
    text: str
    condition: str = ""
    is_late: bool = False
    status: int = 0
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The GpukubeError for a cloud's error.

    Attributes:
        codes: Whole-word pattern of the cloud's codes; "" for any.
        text: Pattern to search in the text, if the code is ambiguous.
        error: The exception class.
        seen, fix: As in a finding.
        code: Code of the finding; "" for that of the class.
    """

    codes: str = ""
    text: str = ""
    error: type[GpukubeError]
    seen: str
    fix: str
    code: str = ""

    def error_at(self, where: str, *, note: str = "", why: str = "", fix: str = "", lacks: str = "") -> GpukubeError:
        """Return the error.

        Args:
            where: The pool or cluster.
            note: Follows the message in parentheses: the cloud's code.
            why: The cloud's own text.
            fix: A more specific fix than the meaning's.
            lacks: The missing permission, if any; it is part of the message, because optional reads (quotas, prices)
                show only the message.
        """
        seen = f"{self.seen}: {lacks}" if lacks and issubclass(self.error, NotAllowed) else self.seen
        seen = f"{seen} ({note})" if note else seen
        return self.error(seen, where=where, fix=fix or self.fix, why=why, code=self.code)


def find_meaning(table: Iterable[Meaning], code: str, text: str) -> Meaning | None:
    """Return the first meaning whose patterns match; None if there is none."""
    fitting = (row for row in table if re.fullmatch(row.codes or ".*", code) and re.search(row.text, text))
    return next(fitting, None)


def missing_permission(text: str, form: re.Pattern[str]) -> str:
    """Return the last permission in a cloud's refusal, "" for none; of several, the first is the allowed one."""
    named = form.findall(text)
    return str(named[-1]) if named else ""


def quote(cloud: str, text: str) -> str:
    """Return a cloud's own text as a quote on one line, cut to a readable length; "" if there is none."""
    line = " ".join(text.split()).rstrip(".")
    return f"{cloud} says: {line[:_LONGEST_QUOTE]}" if line else ""
