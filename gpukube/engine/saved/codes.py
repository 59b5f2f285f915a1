"""Codes of what is said about saved plans, with the sentence docs/codes.md prints; `stale-plan` is a class's own."""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, str]] = {
    "plan-unsaved": "The plan has errors or something unknown, so it is not saved.",
    "saved-plan": "The file is not a saved plan, or is broken.",
    "saved-plan-version": "The saved plan is of another format, or of a newer gpukube.",
    "saved-plan-edited": "The saved plan was changed after it was written.",
    "saved-plan-open": "Others can read or change the saved plan.",
    "saved-plan-place": "The plan was made in the sandbox or with other endpoints than this run.",
    "saved-plan-path": "The plan cannot be written to this path.",
}
