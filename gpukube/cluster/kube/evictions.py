"""What the eviction API answers, as a value: each answer asks for something else of who evicts.

In scope: status and body -> EvictionAnswer; pure. Out of scope: the call (client), and when to repeat it.

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal

from gpukube.core.jsontree import number, text, trees

Refusal = Literal["", "budget", "processing", "throttled", "two-budgets", "namespace", "stuck", "late"]
"""Why a pod does not leave now. budget: its disruption budget is used up. processing: the budget's controller has not
caught up. throttled: API priority and fairness, no budget. two-budgets: more than one covers the pod, which never
succeeds. namespace: it is being deleted, and the pod with it. stuck: the budget's status allows no eviction until its
controller works again. late: the budget was changed by others during each of the server's own tries."""

_BUDGET: Final = "DisruptionBudget"
_PROCESSING: Final = "still being processed"
_GONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


@dataclass(frozen=True, slots=True)
class EvictionAnswer:
    """How an eviction was answered.

    Attributes:
        refusal: "" where the pod leaves, or is gone: another pod may have its name.
        message: The server's words.
        retry_after_s: Seconds that it asks to wait; None where it does not say.
    """

    refusal: Refusal = ""
    message: str = ""
    retry_after_s: float | None = None


def eviction_answer(status: int, content: bytes, retry_after: str) -> EvictionAnswer | None:
    """Read an answer; None where it is no answer of the eviction API: who calls may not, or the server is not well."""
    if status < HTTPStatus.MULTIPLE_CHOICES or status in _GONE:
        # 409: the uid of the precondition is not that of the pod any more; 404: none has this name.
        return EvictionAnswer()
    try:
        body: object = json.loads(content)
    except ValueError:
        body = None
    causes = trees(body, "details", "causes")
    message = next((text(cause, "message") for cause in causes if text(cause, "message")), "") or text(body, "message")
    refusal = _refusal(status, {text(cause, "reason") for cause in causes}, f"{message} {text(body, 'message')}")
    if refusal is None:
        return None
    seconds = retry_after if retry_after.isdecimal() else str(number(body, "details", "retryAfterSeconds"))
    return EvictionAnswer(refusal, message, float(seconds) or None)


def _refusal(status: int, reasons: set[str], words: str) -> Refusal | None:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        if _BUDGET not in reasons:
            return "throttled"
        return "processing" if _PROCESSING in words else "budget"
    if status == HTTPStatus.FORBIDDEN and "NamespaceTerminating" in reasons:
        return "namespace"
    if status == HTTPStatus.FORBIDDEN and ("DisruptedPods map too big" in words or "is negative" in words):
        return "stuck"
    if status == HTTPStatus.INTERNAL_SERVER_ERROR and "more than one PodDisruptionBudget" in words:
        return "two-budgets"
    return "late" if status == HTTPStatus.GATEWAY_TIMEOUT else None
