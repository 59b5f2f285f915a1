"""Write docs/codes.md and docs/diagnostics from the tables of codes: `python -m tools.codes_docs`.

Tests compare: the pages cannot rot. A code with a number, which validate reports, is on a page of docs/diagnostics.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpukube import codes
from gpukube.errors import ExitCode
from gpukube_aks.codes import FAILURE_CODES as AKS_FAILURES
from gpukube_eks.codes import FAILURE_CODES as EKS_FAILURES
from gpukube_gke.codes import FAILURE_CODES as GKE_FAILURES
from tools.code_sites import exit_codes
from tools.diagnostics_docs import write_diagnostics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "codes.md"

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "AKS: what Azure answers": AKS_FAILURES,
    "EKS: what AWS answers": EKS_FAILURES,
    "GKE: what Google Cloud answers": GKE_FAILURES,
    "Live pools": codes.LIVE_POOLS,
    "The Kubernetes API": codes.CLUSTERS,
    "Helm and the chart": codes.HELM,
    "Proving the devices": codes.STEPS,
    "Saved plans": codes.SAVED_PLANS,
    "The command line": codes.COMMANDS,
    "Where no narrower code fits": codes.CLASSES,
}
"""Every table of codes without a number by its heading, in the order of a run."""

HEAD: Final = """# Errors and warnings of a run

<!-- Written by tools/codes_docs.py from the tables of codes; edit those, not this page. -->

Every message is `where: error[code]: problem`, then `why:` if it is not obvious, and `fix:`. Codes are stable:
scripts may rely on them (`-o json` has them too), but the wording may change. Rules for specs and manifests, which need
no call, also have a number and an example: [diagnostics](diagnostics/README.md).

The last column is the exit code of a run that ends with only this error. A run in which some pools or clusters
succeeded exits with 3. A warning does not change the exit code.
"""


def codes_page() -> str:
    """Render the whole page."""
    exits = exit_codes()
    parts = [HEAD]
    for title, table in TABLES.items():
        rows = [f"| `{code}` | {title} | {_exits(exits[code])} |" for code, title in table.items()]
        parts += [f"## {title}\n", "| Code | Meaning | Exit |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"]
    return "\n".join(parts).rstrip() + "\n"


def _exits(found: Sequence[ExitCode]) -> str:
    return " or ".join("warning" if code is ExitCode.DONE else str(int(code)) for code in found)


if __name__ == "__main__":
    PAGE.write_text(codes_page(), "utf-8")
    write_diagnostics()
    sys.stdout.write("wrote docs/codes.md and docs/diagnostics\n")
