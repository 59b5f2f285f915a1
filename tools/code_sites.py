"""Finds every place in the source where an error or warning gets its code, by reading the syntax trees.

In scope: the search, and which exit code a place leads to. The page of codes takes the exit codes from here, the test
of the registry the codes: neither can rot. What a code means is written in `gpukube.codes` and beside each provider.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

from gpukube import errors
from gpukube.cluster.proof.outcome import Step
from gpukube.engine.change.family_record import OutcomeKind
from gpukube.errors import ExitCode, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).parent.parent
ROOMS: Final = ("gpukube", "providers")
NOT_PRODUCT: Final = ("sandbox/gpukube_sandbox/", "gpukube/testing/")
"""The emulated clouds speak the clouds' own codes; the fakes are for tests."""

ERRORS: Final[Mapping[str, type[GpukubeError]]] = {
    name: found for name, found in vars(errors).items() if isinstance(found, type) and issubclass(found, GpukubeError)
}
POSITIONS: Final = {"Finding": 0, "CatalogError": -1, "Meaning": -1, **dict.fromkeys(ERRORS, -1)}
"""Callable -> position of its argument `code`; -1 when it is a keyword."""
BUILT: Final[Mapping[str, tuple[str, ...]]] = {"step-": get_args(Step), "family-": get_args(OutcomeKind)}
"""Codes made of a prefix and a word."""
LOOPED: Final[Mapping[str, tuple[str, ...]]] = {"providers/gpukube_aks/live/client.py": ("subscription", "tenant")}
"""Codes that a loop passes on: one comparison of two identities."""
RAISED_WITH: Final = {
    "gpukube/core/plan.py": ExitCode.ERROR,  # engine.create: Conflict
    "gpukube/cluster/": ExitCode.ERROR,  # engine.create: Conflict
    "gpukube/engine/change/family_run.py": ExitCode.CAPACITY,  # CapacityError
    "gpukube/engine/change/draining.py": ExitCode.ERROR,  # Conflict
    "gpukube/engine/change/proving.py": ExitCode.ERROR,  # ClusterError
    "gpukube/engine/saved/making.py": ExitCode.ERROR,  # GpukubeError
    "gpukube/cli/app.py": ExitCode.ERROR,
}
"""Where diagnostics become another error than SpecError: file or folder -> exit code."""

TOLD_BY = {"gpukube/installed.py": ExitCode.BAD_INPUT}
"""Where an exception is caught and its diagnostic told by a SpecError (engine.prepare): file -> exit code."""

Kind = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Site:
    """One place that gives a code.

    Attributes:
        code: The code; "" when it is not a literal and not passed on from another place.
        file: Path from the root of the repository.
        line: 1-based.
        exit_code: What the process ends with; DONE for a warning.
    """

    code: str
    file: str
    line: int
    exit_code: ExitCode


@cache
def find_sites() -> tuple[Site, ...]:
    """Search the whole product."""
    files = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    named = {path: path.relative_to(ROOT).as_posix() for path in files}
    return tuple(
        site
        for path, name in named.items()
        if not name.startswith(NOT_PRODUCT) and path.name != "codes.py"
        for site in sites_of(name, path.read_text("utf-8"))
    )


def sites_of(file: str, source: str) -> tuple[Site, ...]:
    """Search one file, named as from the root of the repository."""
    return tuple(_Module(file, ast.parse(source)).sites())


def exit_codes() -> dict[str, tuple[ExitCode, ...]]:
    """Return every code of the source with the exit codes it can lead to, lowest first."""
    found: dict[str, set[ExitCode]] = defaultdict(set)
    for site in find_sites():
        found[site.code].add(site.exit_code)
    return {code: tuple(sorted(codes)) for code, codes in sorted(found.items()) if code}


class _Module:
    """One file: its tree, and which of its functions and dataclasses take a code: its own and those it imports."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.tree = tree
        self.constants = dict(_constants(tree))
        self.positions = {**POSITIONS, **dict(_imported(tree)), **dict(_positions(tree))}

    def sites(self) -> Iterator[Site]:
        """Find the places of this file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                yield from self._of_call(node)
            elif isinstance(node, ast.ClassDef) and node.name in ERRORS:
                yield from self._of_class(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                for _, code in re.findall(r"^gpukube: (error|warning)\[([a-z-]+)\]", node.value):
                    yield self._site(node, code, self._exit("error", ""))

    def _of_class(self, node: ast.ClassDef) -> Iterator[Site]:
        code = ERRORS[node.name].default_code
        yield self._site(node, code, ERRORS[node.name].exit_code)

    def _of_call(self, call: ast.Call) -> Iterator[Site]:
        callee = _last_name(call.func)
        if callee not in self.positions:
            return
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        position = self.positions[callee]
        argument = keywords.get("code", call.args[position] if 0 <= position < len(call.args) else None)
        if callee not in ERRORS and isinstance(argument, ast.Constant) and argument.value == "":
            return  # a cloud's answer without a code of its own
        raised = next(
            (name for name in (callee, *map(_last_name, (*call.args, *keywords.values()))) if name in ERRORS), ""
        )
        kind: Kind = "error" if _text(keywords.get("severity")) in ("", "error") else "warning"
        for code in self._codes(argument):
            yield self._site(call, code or (ERRORS[raised].default_code if raised else ""), self._exit(kind, raised))

    def _codes(self, argument: ast.expr | None) -> Iterator[str]:
        if isinstance(argument, ast.Constant):
            yield str(argument.value)
        elif isinstance(argument, ast.IfExp):
            yield from self._codes(argument.body)
            yield from self._codes(argument.orelse)
        elif isinstance(argument, ast.JoinedStr):
            prefix = _text(argument.values[0])
            yield from (prefix + word for word in BUILT.get(prefix, ())) if prefix in BUILT else ("",)
        elif isinstance(argument, ast.Name) and argument.id in self.constants:
            yield self.constants[argument.id]
        elif isinstance(argument, ast.Name) and argument.id != "code":
            yield from LOOPED.get(self.name, ("",))

    def _exit(self, kind: Kind, raised: str) -> ExitCode:
        if kind == "warning":
            return ExitCode.DONE
        if raised:
            return TOLD_BY.get(self.name, ERRORS[raised].exit_code)
        return next((code for place, code in RAISED_WITH.items() if self.name.startswith(place)), ExitCode.BAD_INPUT)

    def _site(self, node: ast.expr | ast.stmt, code: str, exit_code: ExitCode) -> Site:
        return Site(code, self.name, node.lineno, exit_code)


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Find the constants of a module that are texts."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and (value := _text(node.value)):
            yield _last_name(node.target), value


def _positions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Find the functions and dataclasses of a module that take a code, and where."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg != "self"]
        elif isinstance(node, ast.ClassDef):
            names = [_last_name(part.target) for part in node.body if isinstance(part, ast.AnnAssign)]
        else:
            continue
        if "code" in names:
            yield node.name, names.index("code")


def _imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Find the methods that take a code in classes of the product that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            methods = _methods(ROOT / f"{node.module.replace('.', '/')}.py")
            for alias in node.names:
                yield from methods.get(alias.name, ())


@cache
def _methods(path: Path) -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Find the methods that take a code in the classes of a file, and where; nothing where there is no such file."""
    source = path.read_text("utf-8") if path.is_file() else ""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    bodies = {found.name: [part for part in found.body if isinstance(part, ast.FunctionDef)] for found in classes}
    return {name: tuple(_positions(ast.Module(list(body), []))) for name, body in bodies.items()}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
