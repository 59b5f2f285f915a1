"""Write docs/diagnostics from the tables of codes and the cases; `python -m tools.codes_docs` runs it too.

A page per family of rules, and an index. Every rule that validate or workload lint can report: number, name, sentence,
and one example: the message, the wrong lines and the right ones. A test compares: the pages cannot rot.
"""

from __future__ import annotations

import difflib
import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from gpukube import codes
from gpukube.errors import SEVERITIES
from gpukube.rule_ids import rule_id, rule_label
from gpukube.workload.lint.registry import RULES
from gpukube_aks.codes import CODES as AKS_CODES
from gpukube_eks.codes import CODES as EKS_CODES
from gpukube_gke.codes import CODES as GKE_CODES
from tools.message_cases import WORKLOADS, message_cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tools.message_cases import Arguments, Case

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "docs" / "diagnostics"
LONGEST: Final = 160
SHORT: Final = 7
"""Lines of a difference that is shown whole."""
LONG: Final = 12
"""Lines that are shown of a part of one."""

FAMILIES: Final[Mapping[str, tuple[str, Mapping[str, tuple[str, str]]]]] = {
    "spec": ("The spec", codes.SPEC),
    "gpus": ("GPUs and machines", codes.GPUS),
    "pools": ("Pools on their clusters", codes.POOLS),
    "eks": ("EKS", EKS_CODES),
    "aks": ("AKS", AKS_CODES),
    "gke": ("GKE", GKE_CODES),
    "workloads": ("Workloads", codes.WORKLOADS),
}
"""What validate and workload lint can report: the title and the codes of each page."""

SHADOWED: Final = {
    "no-provider": "the spec names no cloud whose provider is not in this distribution",
    "aks-mig-size": "mig-capable speaks first as long as AKS cuts every size that the catalog says it does",
}
"""Codes that are found for targets no spec leads to. Each has its case in its room's tests."""


NOTE: Final = """
<!-- Written by tools/diagnostics_docs.py from the tables of codes and tests/messages; edit those, not this page. -->
"""

ABOUT: Final = """
How to read a message, how to silence one, and the list of all rules: [README.md](README.md). Each example has the
message, the wrong lines (`-`) and the right ones (`+`).
"""

HEAD: Final = (
    f"# Rules of `gpukube validate` and `gpukube workload lint`\n{NOTE}"
    """
`gpukube validate` checks a spec without calling a cloud and reports every problem in one run:

```text
pools.yaml:9:18: error[GPK201 gpu-model]: "A100" matches 2 GPU models of different memory
    fix: write A100-40GB or A100-80GB
```

A message has the position, the severity, the number and name of the rule, the problem, `why:` if
it is not obvious, and `fix:`. Numbers and names never change; wording may. Errors of a live run have a name and no
number: [codes.md](../codes.md).

- An **error** cannot work. The exit code is 4.
- A **warning** probably fails, or does something else than intended. `--strict` makes it an error (`validate`,
  `pool plan`, `pool plan diff`).
- A **hint** works but costs more than necessary. `validate`, `pool plan`, `plan diff`, `create` and `apply` show it.

To accept a warning or hint of a spec, silence it in its pool or under `defaults`, with a reason. You cannot silence an
error. To accept a finding of a manifest, add a comment there: [workloads.md](../workloads.md#ignoring-a-finding).

```yaml
pools:
  - name: a100batchjob
    silence: [{rule: GPK502, reason: never replaced}]   # or the name: aks-name-length
```

`-o json` has every finding with its number, position and field, and the silenced ones. `-o github` annotates the lines
of the spec, as many as GitHub shows per step, and writes the rest to the log. `-o sarif` writes SARIF 2.1.0
for code scanning. All formats: [formats](../formats.md). In a workflow:

```yaml
- run: gpukube validate -f 'pools/**/*.yaml' --strict -o github
- run: gpukube validate -f 'pools/**/*.yaml' -o sarif > gpukube.sarif
  if: always()
- uses: github/codeql-action/upload-sarif@v3
  if: always()
  with: {sarif_file: gpukube.sarif, category: gpukube}
```
"""
)


def diagnostics_pages() -> dict[str, str]:
    """Render the index and the page of each family, by file name."""
    index = [HEAD]
    pages = {}
    for family, (title, table) in FAMILIES.items():
        note = NOTE.replace("messages", "workloads") if table is codes.WORKLOADS else NOTE
        first, _ = next(iter(table.values()))
        heading = f"{title} ({first[:4]}xx)"
        index.append(f"## [{heading}]({family}.md)\n\n{_table(table, family)}")
        parts = [
            f"# {heading}\n{note}{ABOUT}",
            *("\n".join(_section(code, meaning)) for code, (_, meaning) in table.items()),
        ]
        pages[f"{family}.md"] = "\n".join(parts).rstrip() + "\n"
    return {"README.md": "\n".join(index).rstrip() + "\n", **pages}


def write_diagnostics() -> None:
    """Write all pages, and no others."""
    pages = diagnostics_pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, "utf-8")


def _table(table: Mapping[str, tuple[str, str]], family: str) -> str:
    rows = (
        f"| [{number}]({family}.md#{number.lower()}) | `{code}` | {title} |" for code, (number, title) in table.items()
    )
    return "\n".join(["| Number | Name | Meaning |", "| --- | --- | --- |", *rows, ""])


def _section(code: str, meaning: str) -> Iterator[str]:
    yield f'<a id="{rule_id(code).lower()}"></a>\n\n## {rule_label(code)}\n'
    if code in SHADOWED:
        meaning += f" No spec leads here: {SHADOWED[code]}."
    message: list[str] = []
    case = next((case for case in (*message_cases(), *message_cases(WORKLOADS)) if case.code == code), None)
    if case:
        message = _first_message(case.said.splitlines(), code)
    if rule := RULES.get(code):
        why = "" if any(rule.why in line for line in message) else f" Why: {rule.why}."
        meaning += f"{why} [Source]({rule.source})"
    yield f"{meaning}\n"
    if case:
        yield _fenced([*message, *_change(case, message[0])])


def _first_message(said: list[str], code: str) -> list[str]:
    """The first finding of the rule, with its reason and remedy."""
    heads = tuple(f"{severity}[{rule_label(code)}]: " for severity in SEVERITIES)
    first = next(index for index, line in enumerate(said) if any(head in line for head in heads))
    return [said[first], *takewhile(lambda line: line.startswith("    "), said[first + 1 :])]


def _change(case: Case, head: str) -> list[str]:
    """What to write instead: a short difference whole, else the line of the message or the part next to it."""
    if not {"bad.yaml", "good.yaml"} <= case.files.keys():
        return [f"- {_command(case.arguments('bad'))}", f"+ {_command(case.arguments('good'))}"]
    before, after = case.text("bad.yaml"), case.text("good.yaml")
    groups = list(difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(1))
    parts = [[*_lines(group, before, after)] for group in groups]
    if sum(map(len, parts)) <= SHORT:
        return [line for part in parts for line in ("...", *part)][1:]
    place = re.match(r"bad\.yaml:(\d+)", head)
    line = int(place[1]) - 1 if place else 0
    group = min(groups, key=lambda group: max(group[0][1] - line, line - group[-1][2] + 1, 0))
    for tag, first, last, new_first, new_last in group:
        if tag == "replace" and first <= line < last:
            key = before[line].partition(":")[0]
            better = [text for text in after[new_first:new_last] if text.partition(":")[0] == key]
            if better:
                return [f" {before[line - 1]}", f"-{before[line]}", f"+{better[0]}"]
    return [*_lines(group, before, after)][:LONG]


def _lines(group: list[tuple[str, int, int, int, int]], before: list[str], after: list[str]) -> Iterator[str]:
    for tag, first, last, new_first, new_last in group:
        if tag == "equal":
            yield from (f" {line}" for line in before[first:last])
        else:
            yield from (f"-{line}" for line in before[first:last])
            yield from (f"+{line}" for line in after[new_first:new_last])


def _fenced(lines: list[str]) -> str:
    """Write a block; a line of an example that shows how long is too long is cut."""
    cut = (line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..." for line in lines)
    return "\n".join(["```diff", *(line.rstrip() for line in cut), "```", ""])


def _command(given: Arguments) -> str:
    words = [f"{name}={value}" for name, value in given.get("environ", {}).items()]
    words += ["gpukube", "pool", "plan"] if "clusters" in given or "pools" in given else ["gpukube", "validate"]
    for path in given.get("paths", []):
        words += ["-f", path]
    for option in ("set", "cluster", "pool"):
        for value in cast("Mapping[str, list[str]]", given).get(f"{option}s", []):
            words += [f"--{option}", value]
    return shlex.join(words)
