"""Codes of what is said about saved plans, with the sentence docs/codes.md prints; `stale-plan` is a class's own."""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, str]] = {
    "plan-unsaved": "The plan holds errors or something unknown, so that there is nothing to save.",
    "saved-plan": "The file is no saved plan, or a broken one.",
    "saved-plan-version": "The saved plan is of another format, or of a newer gpukube.",
    "saved-plan-edited": "The saved plan was changed after it was written.",
    "saved-plan-open": "Others may read or change the saved plan.",
    "saved-plan-place": "The plan was made in the sandbox or with other endpoints, and this run is elsewhere.",
    "saved-plan-path": "There is no place for a file where the plan should be written.",
}
