"""Responses of the eviction API as values: each kind needs a different reaction.

In scope: parsing status and body into EvictionAnswer; pure. Out of scope: the call (client), and when to repeat it.

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal

from gpukube.core.jsontree import number, text, trees

Refusal = Literal["", "budget", "processing", "throttled", "two-budgets", "namespace", "stuck", "late"]
"""Why a pod cannot leave now. budget: its disruption budget is used up. processing: the budget's controller has not
caught up. throttled: API priority and fairness, no budget. two-budgets: several budgets cover the pod, which never
succeeds. namespace: the namespace is being deleted, and the pod with it. stuck: the budget's status allows no eviction
until its controller works again. late: others changed the budget during each of the server's own attempts."""

_BUDGET: Final = "DisruptionBudget"
_PROCESSING: Final = "still being processed"
_GONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


@dataclass(frozen=True, slots=True)
class EvictionAnswer:
    """Response to an eviction.

    Attributes:
        refusal: "" if the pod leaves, or is gone: another pod may have its name.
        message: The server's message.
        retry_after_s: Seconds that it requests to wait; None if it names none.
    """

    refusal: Refusal = ""
    message: str = ""
    retry_after_s: float | None = None


def eviction_answer(status: int, content: bytes, retry_after: str) -> EvictionAnswer | None:
    """Parse a response; None if the eviction API did not send it: permission missing, or the server is failing."""
    if status < HTTPStatus.MULTIPLE_CHOICES or status in _GONE:
        # 409: the precondition's uid no longer matches the pod; 404: no pod has this name.
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
