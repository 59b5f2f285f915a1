"""Write docs/diagnostics.md from the tables of codes and tests/messages: `python -m tools.codes_docs` writes it too.

Every rule that validate can report: number, name, sentence, what is wrong as the difference to what is right, and what
is said of it. A test compares: the page cannot rot.
"""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from gpukube import codes
from gpukube.errors import SEVERITIES
from gpukube.rule_ids import rule_id, rule_label
from gpukube.spec.codes import CODES as SPEC_CODES
from gpukube_aks.codes import CODES as AKS_CODES
from gpukube_eks.codes import CODES as EKS_CODES
from gpukube_gke.codes import CODES as GKE_CODES
from tools.message_cases import message_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.message_cases import Arguments, Case

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "diagnostics.md"
LONGEST: Final = 160

ROOMS: Final[Mapping[str, Mapping[str, str]]] = {
    "The spec": SPEC_CODES,
    "GPUs and machines": codes.GPUS,
    "Pools on their clusters": codes.POOLS,
    "EKS": EKS_CODES,
    "AKS": AKS_CODES,
    "GKE": GKE_CODES,
}
"""What validate can report, by heading."""

SHADOWED: Final = {
    "no-provider": "the spec names no cloud whose provider is not in this distribution",
    "aks-mig-size": "mig-capable speaks first as long as AKS cuts every size that the catalogue says it does",
}
"""Codes that are found for targets no spec leads to. Each has its case in its room's tests."""


HEAD: Final = """# What `gpukube validate` says

<!-- Written by tools/diagnostics_docs.py from the tables of codes and tests/messages; edit those, not this page. -->

Everything that can be known of a spec without a cloud is said before the first call, all of it in one run:

```text
pools.yaml:9:18: error[GPK201 gpu-model]: "A100" matches 2 GPU models of different memory
    fix: write A100-40GB or A100-80GB
```

Where it stands, how grave it is, the number and the name of the rule, what is wrong with the value seen, `why:` where
that is not plain, and `fix:`. Numbers and names never change; wording may. What only a live run can say has a name and
no number: [codes.md](codes.md).

An **error** cannot work. A **warning** probably will not, or means another thing than meant; `--strict` makes it an
error (`validate`, `pool plan`, `pool plan diff`). A **hint** works and costs more than it has to; it is shown where a
spec is written or brought about: `validate`, `pool plan`, `plan diff`, `create`, `apply`. The exit code is 4 with
errors, else 0.

A warning or hint that is known and fine is silenced in its pool, or under `defaults`, with the reason. An error cannot
be silenced.

```yaml
pools:
  - name: a100batchjob
    silence: [{rule: GPK502, reason: never replaced}]   # or the name: aks-name-length
```

`-o json` has every finding with its number, position and field, and what was silenced; `-o github` writes annotations
beside the lines of the spec, as many as GitHub shows of a step, and the rest into the log; `-o sarif` is for code
scanning (SARIF 2.1.0). In a workflow:

```yaml
- run: gpukube validate -f 'pools/**/*.yaml' --strict -o github
- run: gpukube validate -f 'pools/**/*.yaml' -o sarif > gpukube.sarif
  if: always()
- uses: github/codeql-action/upload-sarif@v3
  if: always()
  with: {sarif_file: gpukube.sarif, category: gpukube}
```

In the examples, lines with `-` are wrong and lines with `+` are what to write instead.
"""


def diagnostics_page() -> str:
    """Render the whole page."""
    parts = [HEAD]
    for title, table in ROOMS.items():
        rows = [f"| [{rule_id(code)}](#{rule_id(code).lower()}) | `{code}` | {says} |" for code, says in table.items()]
        parts.append(f"## {title}\n\n| Number | Name | Meaning |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n")
    for table in ROOMS.values():
        parts += ["\n".join(_section(code, says)) for code, says in table.items()]
    return "\n".join(parts).rstrip() + "\n"


def _section(code: str, says: str) -> Iterator[str]:
    yield f'<a id="{rule_id(code).lower()}"></a>\n\n### {rule_label(code)}\n\n{says}\n'
    if code in SHADOWED:
        yield f"No spec leads here: {SHADOWED[code]}.\n"
    for case in message_cases():
        if case.code == code:
            yield from _example(case)


def _example(case: Case) -> Iterator[str]:
    if {"bad.yaml", "good.yaml"} <= case.files.keys():
        yield _fenced("diff", _differences(case.text("bad.yaml"), case.text("good.yaml")))
    else:
        yield _fenced("diff", [f"- {_command(case.arguments('bad'))}", f"+ {_command(case.arguments('good'))}"])
    yield _fenced("text", [*_about(case.said.splitlines(), case.code)])


def _about(said: list[str], code: str) -> Iterator[str]:
    """Keep what is said of this rule, with its reasons and remedies."""
    heads = tuple(f"{severity}[{rule_label(code)}]: " for severity in SEVERITIES)
    meant = False
    for line in said:
        if not line.startswith("    "):
            meant = any(head in line for head in heads)
        if meant:
            yield line


def _differences(before: list[str], after: list[str]) -> Iterator[str]:
    for line in list(difflib.unified_diff(before, after, n=2, lineterm=""))[2:]:
        yield "..." if line.startswith("@@") else line


def _fenced(kind: str, lines: Iterator[str] | list[str]) -> str:
    """Write a block; a line of an example that shows how long is too long is cut."""
    cut = (line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..." for line in lines)
    return "\n".join([f"```{kind}", *(line.rstrip() for line in cut), "```", ""])


def _command(given: Arguments) -> str:
    words = [f"{name}={value}" for name, value in given.get("environ", {}).items()]
    words += ["gpukube", "pool", "plan"] if "clusters" in given or "pools" in given else ["gpukube", "validate"]
    for path in given.get("paths", []):
        words += ["-f", path]
    for option in ("set", "cluster", "pool"):
        for value in cast("Mapping[str, list[str]]", given).get(f"{option}s", []):
            words += [f"--{option}", value]
    return shlex.join(words)
