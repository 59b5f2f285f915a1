"""Parses Kubernetes manifests into objects that record line and column of every key and value.

Pure. In scope: parsing as kubectl does (sigs.k8s.io/yaml), expanding lists. Out of scope: files, and what an object
means.

kubectl follows YAML 1.1 in part: `yes`, `on`, and `y` are booleans, `010` is eight, dates and `1:30` are strings, merge
keys apply, numeric keys become strings (kubernetes-sigs/yaml goyaml.v2/resolve.go and yaml.go). So a value here is what
the API server gets. Duplicate keys are errors, as in kubectl's strict validation, and so are tags, which no one writes
in manifests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from gpukube.spec.source.document import PARSER, Limits, Reader, load_documents
from gpukube.spec.source.positions import PositionedDict, PositionedList, Positions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.errors import Finding
    from gpukube.spec.source.document import Document, Parser
    from gpukube.spec.source.positions import Data

LIMITS: Final = Limits(size=64 * 1024 * 1024, depth=256, documents=50_000, aliases=10_000)
"""Limits for manifests: a chart with its operators' CRDs is some 5 MiB of YAML, and the schemas are 60 levels deep."""

_MOST_DIGITS: Final = 300
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_BEGINS: Final = frozenset("-+.0123456789")
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|0[oO]?(?P<octal>[0-7]+)|(?P<decimal>0|[1-9][0-9]*))"
)
_BASES: Final = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_ALWAYS: Final = frozenset({"yaml-syntax", "yaml-limit"})
_TEMPLATE: Final = re.compile(r"\{\{-? *[^ }]")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One Kubernetes object.

    Attributes:
        root: Content of the object.
        positions: Positions of its fields; paths are relative to the object, also inside a List.
        api_version: API version; "" if missing.
        kind: Kind; "" if missing.
        name: Name; "" if missing.
        namespace: Namespace; "" if missing.
    """

    root: PositionedDict
    positions: Positions
    api_version: str
    kind: str
    name: str
    namespace: str

    @property
    def source(self) -> str:
        """The file, "-" for stdin."""
        return self.positions.origin.names[0]

    def __str__(self) -> str:
        """Render as kubectl does: "Deployment/web"."""
        return f"{self.kind or 'object'}/{self.name}" if self.name else self.kind or "object"


@dataclass(frozen=True, slots=True)
class ManifestReading:
    """Content of a text.

    Attributes:
        manifests: Its objects, including those in lists; content without apiVersion and kind is skipped.
        findings: Problems with the YAML; the surrounding objects are still read.
    """

    manifests: tuple[Manifest, ...]
    findings: tuple[Finding, ...]


def read_manifests(text: str, source: str, *, parser: Parser = PARSER) -> ManifestReading:
    """Parse all objects of a text.

    Args:
        text: YAML of any number of documents, or JSON.
        source: Name for positions: the file as the user wrote it, "-" for stdin.
        parser: PyYAML's C parser, or its Python one.
    """
    documents, problems = load_documents(text, source, parser=parser, policy=_ManifestReader)
    problems = tuple(problem for problem in problems if problem.code in _ALWAYS or _is_of_object(problem, documents))
    manifests = [manifest for document in documents for manifest in _objects(document)]
    if problems and _TEMPLATE.search(text):
        problems = tuple(map(_explain_template, problems))
    return ManifestReading(tuple(manifests), problems)


def parse_plain(text: str) -> str | int | float | bool | None:
    """Return the value that kubectl parses from an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _BEGINS or len(text) > _MOST_DIGITS:
        return text
    plain = text.replace("_", "") if text[0] != "." else text
    if found := _INTEGER.fullmatch(plain):
        base = found.lastgroup or "decimal"
        return int(found["sign"] + found[base], _BASES[base])
    if _FLOAT.fullmatch(plain):
        return float(plain)
    return float(text.replace(".", "")) if _SPECIAL.fullmatch(text) else text


def _is_of_object(problem: Finding, documents: Sequence[Document]) -> bool:
    """Return whether a problem is in a Kubernetes object; other YAML may have its own tags and keys."""
    begun = [document for document in documents if document.origin.where(document.mark).line <= problem.where.line]
    root = begun[-1].root if begun else None
    return not isinstance(root, PositionedDict) or "kind" in root or "apiVersion" in root


def _objects(document: Document) -> Iterator[Manifest]:
    waiting = [Positions(document.root, document.origin, document.mark)]
    while waiting:
        positions = waiting.pop()
        root = positions.root
        if not isinstance(root, PositionedDict):
            continue
        kind = _text(root.get("kind"))
        listed = root.get("items")
        if kind.endswith("List") and isinstance(listed, PositionedList):
            waiting += (positions.within(("items", index)) for index in reversed(range(len(listed))))
            continue
        if not kind and "apiVersion" not in root:
            continue
        metadata = root.get("metadata")
        named = metadata if isinstance(metadata, PositionedDict) else {}
        yield Manifest(
            root,
            positions,
            _text(root.get("apiVersion")),
            kind,
            _text(named.get("name")),
            _text(named.get("namespace")),
        )


def _text(value: Data) -> str:
    return value if isinstance(value, str) else ""


def _explain_template(problem: Finding) -> Finding:
    """Turn a problem with a chart template into a message that names it as such."""
    return replace(
        problem,
        why="the file is a Helm template, not YAML",
        fix=f"render it first: helm template . | gpukube workload lint - ({problem.fix})",
    )


class _ManifestReader(Reader):
    """A reader that behaves like kubectl."""

    limits: ClassVar[Limits] = LIMITS

    def reset(self) -> None:
        super().reset()
        self._merging: dict[int, int] = {}  # depth -> mark of the key << whose value comes next
        self._merged: dict[int, set[str]] = {}  # depth -> merged keys of that mapping

    def plain(self, text: str, mark: int) -> Data:
        value = parse_plain(text)
        if type(value) is not str and str(value) != text:
            self.origin.spellings[mark] = text
        return value

    def key(self, value: Data, text: str, mark: int, *, plain: bool) -> None:
        depth = len(self.open)
        if plain and text == "<<":
            self._merging[depth] = mark
            self.keys[-1] = (None, mark)
            return
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, int | float):
            value = str(value)
        into = self.open[-1]
        if isinstance(value, str) and isinstance(into, PositionedDict) and value in self._merged.get(depth, ()):
            self._merged[depth].discard(value)
            del into[value]  # written keys override merged ones
        again = isinstance(value, str) and value in into
        super().key(value, text, mark, plain=plain)
        if again:  # clients that accept the object use the last
            self.keys[-1] = (str(value), mark)

    def place(self, value: Data, mark: int) -> None:
        self._merged.pop(len(self.open) + 1, None)  # for the mapping that has just ended here
        merge_mark = self._merging.pop(len(self.open), None) if self._merging and self._takes_value() else None
        super().place(value, mark)
        if merge_mark is not None:
            self._merge(value, merge_mark)

    def _takes_value(self) -> bool:
        return bool(self.open) and type(self.open[-1]) is PositionedDict

    def _merge(self, value: Data, mark: int) -> None:
        """Add the entries of a mapping, or of each in a list, if no key of that name is written or merged before."""
        into = self.open[-1]
        sources = value if isinstance(value, PositionedList) else [value]
        merged = self._merged.setdefault(len(self.open), set())
        for source in sources:
            if not isinstance(source, PositionedDict) or not isinstance(into, PositionedDict):
                self.refuse("yaml-merge-key", mark, "the value of << is not a mapping", "write << with an alias: *name")
                return
            for name in source:
                if name not in into:
                    into.take(name, source)
                    merged.add(name)
