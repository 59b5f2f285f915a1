"""Write the JSON Schemas of the documents from their types: `python -m tools.document_schemas`.

They lie in the package, where programs find them; the documentation links to them there. A test compares.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpukube.engine.documents import shapes
from gpukube.engine.documents.schema import SCHEMA_NAMES, document_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "gpukube" / "engine" / "documents" / "schemas"
MODULES: Final = [import_module(f"{shapes.__name__}.{module.name}") for module in iter_modules(shapes.__path__)]


def schemas() -> dict[str, str]:
    """Render every schema, by name."""
    texts: dict[str, dict[str, str]] = {}
    for module in MODULES:
        texts |= _descriptions(module, texts)
    return {name: json.dumps(_schema(name, texts), indent=2) + "\n" for name in dict.fromkeys(SCHEMA_NAMES.values())}


def _schema(name: str, texts: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    kinds = [kind for kind, schema in SCHEMA_NAMES.items() if schema == name]
    shape = document_shape(kinds[0])
    _, components = msgspec.json.schema_components([shape], schema_hook=_anything, ref_template="#/$defs/{name}")
    described = {key: _described(made, texts[key]) for key, made in components.items()}
    top = described.pop(shape.__name__)
    top["properties"]["kind"]["enum"] = sorted(kinds)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:gpukube:{name}:1"}
    return head | top | {"title": f"gpukube {name}", "$defs": dict(sorted(described.items()))}


def _anything(_shape: type) -> dict[str, Any]:
    """Return the schema of `object`, the only type in the shapes that the library does not know."""
    return {"type": ["null", "boolean", "number", "string", "array", "object"]}


def _described(made: dict[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Add to each key its description."""
    keys = {key: value | {"description": texts[key]} for key, value in made["properties"].items()}
    return {**made, "properties": keys}


def _descriptions(module: ModuleType, known: Mapping[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Read the texts below the keys of all shapes of a module, those of the shape it extends included.

    Args:
        module: The module.
        known: Texts of the modules before it.
    """
    found = dict(known)
    for shape in ast.parse(inspect.getsource(module)).body:
        if isinstance(shape, ast.ClassDef):
            own = dict(_texts(shape.body))
            inherited = [found[base.id] for base in shape.bases if isinstance(base, ast.Name) and base.id in found]
            found[shape.name] = {key: text for texts in (*inherited, own) for key, text in texts.items()}
    return found


def _texts(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    for key, below in pairwise(body):
        if isinstance(key, ast.AnnAssign) and isinstance(key.target, ast.Name) and isinstance(below, ast.Expr):
            yield key.target.id, inspect.cleandoc(str(ast.literal_eval(below.value)))


if __name__ == "__main__":
    for name, text in schemas().items():
        (FOLDER / f"{name}.schema.json").write_text(text, "utf-8")
    sys.stdout.write(f"wrote {len(set(SCHEMA_NAMES.values()))} schemas\n")
