"""Saved plans: what `plan --out` writes and `apply plan.json` applies exactly or refuses as stale.

A plan is a pure function of specs, options and live state. A saved one therefore holds the specs and the options, and
what was seen and decided; to apply it, gpukube plans afresh from them and compares. Nothing of the file is sent to a
cloud: a forged one can at most make the comparison fail, or ask for what its specs say.
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
