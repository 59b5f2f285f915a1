"""Write what is made from the models: `python tools/spec_docs.py`. Tests compare.

docs/spec.md, docs/gpukube.schema.json, and the names of fields for completion, which must not load the models.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube.spec.model import PROVIDERS
from gpukube.spec.reference.fieldguide import explain_field, field_names
from gpukube.spec.reference.schema import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.spec.reference.fieldguide import FieldPage

PAGE = Path(__file__).parent.parent / "docs" / "spec.md"
SCHEMA = PAGE.with_name("gpukube.schema.json")
NAMES = PAGE.parent.parent / "gpukube" / "cli" / "field_names.py"

HEAD = """# The spec, field by field

<!-- Written by tools/spec_docs.py from the models; edit their descriptions, not this page. -->

`-f` takes a file, several files, a directory (`*.yaml`, `*.yml`), a quoted pattern (`'pools/**/*.yaml'`) or `-` for
stdin; several documents in a file are several specs. Files are YAML 1.2: `no` is a string, anchors are allowed, tags
and merge keys are not.

- **Variables.** `${NAME}` in a value comes from the environment, `${NAME:-text}` defaults to the text, and `$${` is a
  literal `${`.
- **Overrides.** `--set pools[0].nodes.count=2` (or `pools.a100mig.nodes.count=2`) sets a field. A string field keeps
  the text as written (`--set pools[0].kubernetesVersion=1.30`); other fields read it as YAML. Put a key with dots in
  brackets (`--set 'pools.a100mig.labels["example.com/team"]=ml'`).
- **Defaults.** gpukube merges `defaults` into every pool: it merges maps and replaces lists. A pool with an
  alternative (autoscaling instead of count, another kind of sharing) drops the default one.
- **Limits.** A file may have 5 MiB, 64 levels and 1,000 documents, and a mapping 20,000 keys (`yaml-limit`). gpukube
  refuses a named pipe, which may never get a writer, but reads `-` and `<(COMMAND)`.

An unknown key is an error that suggests the nearest known one; [diagnostics](diagnostics/README.md) has every error,
warning and hint. gpukube merges native fields under `eks`, `aks` and `gke` into the request last, and refuses a field
whose change it cannot classify.

## Start with a template

`gpukube init` writes a commented spec. On a terminal it prompts for missing flags and checks every answer
with the rules of `validate`; Ctrl-C leaves no file. Without a terminal the flags must be complete:

```sh
gpukube init --provider aks --name train --resource-group ml \\
  --subscription 11111111-2222-3333-4444-555555555555 --gpu A100-40GB --mig 1g.5gb
gpukube init --provider eks --account 111122223333 --region us-east-1 --name train --gpu T4 --out -
```

Repeat `--provider` for one pool on one cluster of each cloud. `--replicas` shares GPUs by time-slicing,
`--spot` buys Spot machines. `init` keeps an existing file unless you pass `--force`. `gpukube --sandbox init` does not
prompt: it fills missing flags with examples for the emulated clouds.

## Look up a field

`gpukube explain FIELD` shows the type of a field, its values and default, how each cloud implements it, and what a
change does to a live pool: in place, in place with disrupted pods, or a new pool. It needs no cloud and no spec.

```sh
gpukube explain pools.sharing.mig.profile   # or sharing.mig.profile, or mig.profile
gpukube explain pools --recursive           # all fields of a pool
gpukube explain defaults.taints -o json
gpukube explain nodes.count -v              # with sources
```

`gpukube explain owner POOL -f FILE` explains who runs driver and device plugin of a pool:
[device-plugin.md](device-plugin.md).

## In an editor

[gpukube.schema.json](gpukube.schema.json) is the JSON Schema (draft 2020-12) of a spec; `gpukube schema` prints the
installed version's. With yaml-language-server (in VS Code, Neovim, Emacs, Helix, ...) the first line of a spec
enables completion, descriptions and checks:

```yaml
# yaml-language-server: $schema=gpukube.schema.json
```

`$schema=` takes a path relative to the spec, or a URL. The editor completes keys, choices, GPU models, instance types
by cloud and MIG profiles; it accepts unknown models and types. A cluster has the fields of its `provider`.
`${NAME}` is allowed in any text. `gpukube validate` also checks rules across fields and those of each cloud.

Tested with yaml-language-server 1.25: completion, hover over keys, and one message per
mistake in a bad file (`GPUKUBE_TEST_YAML_LS=/path/to/yaml-language-server pytest tests/docs/test_editor.py`).
Other tools can use the schema too: `check-jsonschema --schemafile gpukube.schema.json pools.yaml`."""


def schema_file() -> str:
    """Render the published JSON Schema: what `gpukube schema` prints."""
    return json.dumps(json_schema(), indent=2) + "\n"


def spec_page() -> str:
    """Render the whole page."""
    parts = [HEAD, "## Top level\n", _table(_row(field, field.path) for field in explain_field("").fields)]
    for provider in PROVIDERS:
        parts += [f"## {provider.upper()} cluster\n", _table(_of_cluster(provider))]
    parts += ["## Pool\n", _table(_row(field, field.path.removeprefix("pools[].")) for field in _of_pool())]
    return "\n".join(parts).rstrip() + "\n"


def names_module() -> str:
    """Write the module of field names."""
    names = "\n".join(field_names())
    return (
        '"""The fields of the spec, for completion. Written by tools/spec_docs.py from the models."""\n\n'
        f'FIELD_NAMES = """\n{names}\n"""\n'
    )


def _of_cluster(provider: str) -> Iterator[str]:
    for field in explain_field("clusters").fields:
        if not field.providers or provider in field.providers:
            yield _row(field, field.path.rpartition(".")[2])


def _of_pool() -> Iterator[FieldPage]:
    """List the fields of a pool, all levels; those that only repeat a provider's name are listed with their mapping."""
    pools = explain_field("pools")
    return (field for field in pools.below() if field is not pools and field.description[:3] != "On ")


def _table(rows: Iterable[str]) -> str:
    return "\n".join(["| | |", "| --- | --- |", *rows]) + "\n"


def _row(field: FieldPage, name: str) -> str:
    marks = " **required**" if field.required and "." not in name else ""
    choices = f" One of {', '.join(f'`{choice}`' for choice in field.choices)}." if len(field.choices) > 1 else ""
    default = field.default
    shown = json.dumps(default) if isinstance(default, bool) else default
    said = f" Default: `{shown}`." if shown not in (None, "") else ""
    return f"| `{name}` | {field.description}{marks}{choices}{said} |"


if __name__ == "__main__":
    PAGE.write_text(spec_page())
    SCHEMA.write_text(schema_file())
    NAMES.write_text(names_module())
    sys.stdout.write(f"wrote {PAGE.name}, {SCHEMA.name} and {NAMES.name}\n")
