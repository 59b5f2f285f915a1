"""Saved plans: `plan --out` writes them, `apply plan.json` applies them exactly or rejects them as stale.

A plan is a pure function of specs, options, and live state. A saved plan therefore contains the specs, the options, and
what was read and decided; to apply it, gpukube plans again from them and compares. Nothing in the file is sent to a
cloud: a forged file can at most make the comparison fail, or request what its specs contain.
"""

from gpukube.engine.saved.file import SavedPlan, read_plan, write_plan
from gpukube.engine.saved.freshness import require_fresh, require_place
from gpukube.engine.saved.making import require_savable, saved_plan
from gpukube.engine.saved.options import PlanOptions
from gpukube.engine.saved.provenance import Provenance, provenance

__all__ = [
    "PlanOptions",
    "Provenance",
    "SavedPlan",
    "provenance",
    "read_plan",
    "require_fresh",
    "require_place",
    "require_savable",
    "saved_plan",
    "write_plan",
]
