"""Measure the house: one table of sizes, complexity, private helpers, comments and typing for four parts of the tree.

    python tools/measures.py            # this checkout
    python tools/measures.py DIR        # another one, to compare before and after
    python tools/measures.py --list 15  # the functions above complexity 15, instead of the table

In scope: what is counted and how. Out of scope: limits; ruff checks those.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

PARTS: Final = {
    "product": ("gpukube", "providers"),
    "providers": ("providers",),
    "sandbox": ("sandbox/gpukube_sandbox",),
    "tests": ("tests", "sandbox/sandbox_tests", "examples/provider/tests"),
}
SHORT: Final = 4
"""Lines of a function, its docstring apart, up to which it may be simpler without a name."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED: Final = (ast.Module, ast.ClassDef, *FUNCTIONS)


@dataclass(frozen=True)
class Source:
    """One Python file: its text, tree and tokens."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file."""
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def comments(self) -> list[tokenize.TokenInfo]:
        """Every comment."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [token for token in tokens if token.type == tokenize.COMMENT]

    @cached_property
    def docstring_lines(self) -> set[int]:
        """Numbers of the lines that strings fill which nobody reads: docstrings, also those of constants."""
        strings = (
            node
            for node in self.nodes
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        )
        return {line for string in strings for line in range(string.lineno, (string.end_lineno or 0) + 1)}

    @cached_property
    def functions(self) -> list[Function]:
        """Functions and methods; one inside another belongs to the outer one."""
        return list(_outermost(self.tree))

    @cached_property
    def private(self) -> list[Function]:
        """Functions of the module whose name begins with an underscore."""
        return [node for node in self.tree.body if isinstance(node, FUNCTIONS) and node.name.startswith("_")]

    @cached_property
    def private_used_once(self) -> list[Function]:
        """The private functions that the module names in one place."""
        uses = Counter(node.id for node in self.nodes if isinstance(node, ast.Name))
        return [function for function in self.private if uses[function.name] == 1]

    def own_lines(self, function: Function) -> int:
        """Lines of a function, its docstring apart."""
        numbers = range(function.lineno, (function.end_lineno or 0) + 1)
        return len([number for number in numbers if number not in self.docstring_lines])


def main() -> None:
    """Print the table, or the functions above a complexity."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", type=int, metavar="N", help="list the functions of complexity above N")
    options = parser.parse_args()
    parts = {part: list(_sources(options.directory, folders)) for part, folders in PARTS.items()}
    if options.list is None:
        _print_table([["", *parts], *([name, *map(measure, parts.values())] for name, measure in MEASURES.items())])
        return
    for source in (source for part, sources in parts.items() if part != "providers" for source in sources):
        for function in source.functions:
            if (measured := complexity(function)) > options.list:
                place = f"{source.path.relative_to(options.directory)}:{function.lineno}"
                print(f"{measured:4} {place} {function.name}")


def complexity(function: Function) -> int:
    """Return the cyclomatic complexity of a function as radon counts it, with the functions inside it."""
    return 1 + sum(_branches(node) for node in ast.walk(function))


def _branches(node: ast.AST) -> int:
    match node:
        case ast.BoolOp(values=values):
            return len(values) - 1
        case ast.comprehension(ifs=ifs):
            return 1 + len(ifs)
        case ast.If() | ast.IfExp() | ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler() | ast.Assert():
            return 1
        case ast.match_case(pattern=pattern):
            return 0 if isinstance(pattern, ast.MatchAs) and pattern.pattern is None else 1
        case _:
            return 0


def _outermost(node: ast.AST) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield child
        else:
            yield from _outermost(child)


def _sources(directory: Path, folders: Iterable[str]) -> Iterator[Source]:
    for folder in folders:
        for path in sorted((directory / folder).rglob("*.py")):
            yield Source(path, path.read_text(encoding="utf-8"))


def _size(sources: Sequence[Source]) -> str:
    return f"{_line_count(sources):,} ({len(sources)})"


def _kinds_of_lines(sources: Sequence[Source]) -> str:
    docstrings = sum(len(source.docstring_lines) for source in sources)
    comments = sum(_own_comments(source) for source in sources)
    blank = sum(
        not line.strip() and number not in source.docstring_lines
        for source in sources
        for number, line in enumerate(source.lines, 1)
    )
    return _slashed(_line_count(sources) - docstrings - comments - blank, docstrings, comments, blank)


def _file_sizes(sources: Sequence[Source]) -> str:
    return _spread([len(source.lines) for source in sources if source.lines])


def _function_sizes(sources: Sequence[Source]) -> str:
    return _spread([source.own_lines(function) for source in sources for function in source.functions])


def _complexities(sources: Sequence[Source]) -> str:
    found = [complexity(function) for source in sources for function in source.functions]
    return _slashed(sum(one > 10 for one in found), sum(one > 15 for one in found), max(found))  # noqa: PLR2004


def _private(sources: Sequence[Source]) -> str:
    count = sum(len(source.private) for source in sources)
    return f"{count:,} ({_per_thousand(count, sources)})"


def _used_once(sources: Sequence[Source]) -> str:
    once = [(source, function) for source in sources for function in source.private_used_once]
    short = sum(source.own_lines(function) <= SHORT for source, function in once)
    return f"{len(once):,} ({_per_thousand(len(once), sources)}), {short}"


def _comments(sources: Sequence[Source]) -> str:
    own = sum(_own_comments(source) for source in sources)
    trailing = sum(len(source.comments) for source in sources) - own
    return f"{_per_thousand(own, sources)} / {_per_thousand(trailing, sources)}"


def _public_docstrings(sources: Sequence[Source]) -> str:
    public = [
        ast.get_docstring(node) is not None
        for source in sources
        for node in _public(source.tree)
        if isinstance(node, DOCUMENTED)
    ]
    return f"{sum(public) / len(public):.0%}"


def _public(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a module, its public classes and functions, and the public methods of those classes."""
    yield node
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in node.body:
            if isinstance(child, (ast.ClassDef, *FUNCTIONS)) and not child.name.startswith("_"):
                yield from _public(child)


def _exported(sources: Sequence[Source]) -> str:
    return str(
        sum(
            len(node.value.elts)
            for source in sources
            for node in source.tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple)
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        )
    )


def _typing(sources: Sequence[Source]) -> str:
    patterns = (r"# type: ignore", r"# noqa", r"\bAny\b", r"\bobject\b", r"\bcast\(")
    lines = [
        line
        for source in sources
        for number, line in enumerate(source.lines, 1)
        if number not in source.docstring_lines
    ]
    return _slashed(*(sum(bool(re.search(pattern, line)) for line in lines) for pattern in patterns))


def _folders(sources: Sequence[Source]) -> str:
    sizes = Counter(source.path.parent for source in sources).values()
    return f"{median(sizes):g} / {max(sizes)}"


def _say(sources: Sequence[Source]) -> str:
    count = sum(
        len(re.findall(r"\b(?:say|says|said|tell|tells|told)\b", source.text, re.IGNORECASE)) for source in sources
    )
    return f"{count} ({_per_thousand(count, sources)})"


MEASURES: Final[dict[str, Callable[[Sequence[Source]], str]]] = {
    "lines (files)": _size,
    "code / docstring / # / blank": _kinds_of_lines,
    "file: median / p90 / max": _file_sizes,
    "function: median / p90 / max": _function_sizes,
    "complexity: > 10 / > 15 / max": _complexities,
    "private functions (per 1,000 lines)": _private,
    f"used once (per 1,000 lines), <= {SHORT} lines": _used_once,
    "comments: own / trailing, per 1,000": _comments,
    "public docstrings": _public_docstrings,
    "names in __all__": _exported,
    "lines with type: ignore / noqa / Any / object / cast": _typing,
    "files per folder: median / largest": _folders,
    "say, tell and their forms (per 1,000 lines)": _say,
}


def _own_comments(source: Source) -> int:
    return sum(not comment.line[: comment.start[1]].strip() for comment in source.comments)


def _line_count(sources: Iterable[Source]) -> int:
    return sum(len(source.lines) for source in sources)


def _per_thousand(count: int, sources: Iterable[Source]) -> str:
    return f"{1000 * count / _line_count(sources):.1f}"


def _spread(sizes: Iterable[int]) -> str:
    ordered = sorted(sizes)
    return _slashed(int(median(ordered)), ordered[int(0.9 * len(ordered))], ordered[-1])


def _slashed(*numbers: int) -> str:
    return " / ".join(f"{number:,}" for number in numbers)


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
