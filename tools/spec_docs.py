"""Write docs/spec.md and docs/gpukube.schema.json from the models: `python tools/spec_docs.py`. A test compares."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpukube.spec.schema import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = Path(__file__).parent.parent / "docs" / "spec.md"
SCHEMA = PAGE.with_name("gpukube.schema.json")

HEAD = """# The spec, field by field

<!-- Written by tools/spec_docs.py from the models; edit their descriptions, not this page. -->

One file, several files, a directory (`*.yaml`, `*.yml`) or `-` for stdin; several documents in a file are several
specs. YAML 1.2: `no` is a string, anchors are allowed, tags and merge keys are not. `${NAME}` in a value is taken from
the environment, `$${` is a literal `${`. `--set pools[0].nodes.count=2` (or `pools.a100mig.nodes.count=2`) overrides.
`defaults` is merged under every pool: maps are merged, lists replaced, and a pool that chooses another way (autoscaling
instead of count, another kind of sharing) drops the default one.

An unknown key is an error with the nearest known one; [codes.md](codes.md) has every error and warning. Native fields
under `eks`, `aks` and `gke` are merged into the request last; one that gpukube cannot judge the change of is refused.
"""


def schema_file() -> str:
    """Render the published JSON Schema: what `gpukube schema` prints."""
    return json.dumps(json_schema(), indent=2) + "\n"


def spec_page() -> str:
    """Render the whole page."""
    schema: dict[str, Any] = dict(json_schema())
    definitions = schema["$defs"]
    parts = [HEAD, "## Top level\n", _table(_rows(schema, definitions, depth=1))]
    for name, title in (("AksCluster", "AKS cluster"), ("EksCluster", "EKS cluster"), ("GkeCluster", "GKE cluster")):
        parts += [f"## {title}\n", _table(_rows(definitions[name], definitions))]
    parts += ["## Pool\n", _table(_rows(definitions["Pool"], definitions))]
    return "\n".join(parts).rstrip() + "\n"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = ["| | |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {left} | {right} |" for left, right in rows)]) + "\n"


def _rows(
    model: dict[str, Any], definitions: dict[str, Any], prefix: str = "", depth: int = 9
) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    required = model.get("required", [])
    for name, field in model["properties"].items():
        inner = _inner(field, definitions)
        path = f"{prefix}{name}"
        must = " **required**" if name in required and not prefix else ""
        said = field.get("description") or (inner or {}).get("description", "")
        rows.append((f"`{path}`", f"{said}{must}{_choices(field)}"))
        if inner and depth > 1:
            rows += _rows(inner, definitions, f"{path}{'[]' if field.get('type') == 'array' else ''}.", depth - 1)
    return rows


def _inner(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any] | None:
    for candidate in (field, field.get("items", {}), *field.get("anyOf", ())):
        reference = candidate.get("$ref", "")
        found = definitions.get(reference.rpartition("/")[2])
        if found and "properties" in found:
            return dict(found)
    return None


def _choices(field: dict[str, Any]) -> str:
    default = field.get("default")
    shown = default if isinstance(default, (str, int, float)) and default != "" else None
    return f" Default: `{str(shown).lower() if isinstance(shown, bool) else shown}`." if shown is not None else ""


if __name__ == "__main__":
    PAGE.write_text(spec_page())
    SCHEMA.write_text(schema_file())
    sys.stdout.write(f"wrote {PAGE.name} and {SCHEMA.name}\n")
