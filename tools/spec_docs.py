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

One file, several files, a directory (`*.yaml`, `*.yml`), a quoted pattern (`'pools/**/*.yaml'`) or `-` for stdin;
several documents in a file are several specs. YAML 1.2: `no` is a string, anchors are allowed, tags and merge keys
are not. `${NAME}` in a value is taken from the environment, `${NAME:-text}` is the text where that is not set, `$${`
is a literal `${`. `--set pools[0].nodes.count=2` (or `pools.a100mig.nodes.count=2`) overrides. Where a field is a
string, the text is kept as written (`--set pools[0].kubernetesVersion=1.30`), elsewhere it is read as YAML; a key
with dots is written in brackets (`--set 'pools.a100mig.labels["example.com/team"]=ml'`). `defaults` is merged under
every pool: maps are merged, lists replaced, and a pool with an alternative (autoscaling instead of count, another
kind of sharing) drops the default one.

A file may have 5 MiB, 64 levels and 1,000 documents, and a mapping 20,000 keys (`yaml-limit`). A named pipe is refused,
as nobody may ever write to it; `-` and `<(COMMAND)` are read.

An unknown key is an error that suggests the nearest known one; [diagnostics](diagnostics/README.md) has every error,
warning and hint. Native fields under `eks`, `aks` and `gke` are merged into the request last; a field whose change
gpukube cannot classify is refused.

## Start with a template

`gpukube init` writes a commented spec. On a terminal it prompts for what its flags leave open and checks every answer
with the rules of `validate`; Ctrl-C leaves no file. Without a terminal the flags must be complete:

```sh
gpukube init --provider aks --name train --resource-group ml \\
  --subscription 11111111-2222-3333-4444-555555555555 --gpu A100-40GB --mig 1g.5gb
gpukube init --provider eks --account 111122223333 --region us-east-1 --name train --gpu T4 --out -
```

`--provider` may be repeated: one pool, on one cluster of each cloud. `--replicas` shares GPUs by time-slicing,
`--spot` buys Spot machines. An existing file is kept unless `--force` is given. `gpukube --sandbox init` prompts for
nothing: what is not given is an example that the emulated clouds take.

## Look up a field

`gpukube explain FIELD` shows the type of a field, its values and default, how each cloud does it, and what a change
does to a live pool: in place, in place but disturbing pods, or a new pool. It needs no cloud and no spec.

```sh
gpukube explain pools.sharing.mig.profile   # or sharing.mig.profile, or mig.profile
gpukube explain pools --recursive           # all fields of a pool
gpukube explain defaults.taints -o json
gpukube explain nodes.count -v              # with sources
```

`gpukube explain owner POOL -f FILE` is about one pool: see [device-plugin.md](device-plugin.md).

## In an editor

[gpukube.schema.json](gpukube.schema.json) is the JSON Schema (draft 2020-12) of a spec; `gpukube schema` prints that
of the installed version. With yaml-language-server (in VS Code, Neovim, Emacs, Helix, ...) the first line of a spec
turns on completion, descriptions and checks:

```yaml
# yaml-language-server: $schema=gpukube.schema.json
```

`$schema=` takes a path relative to the spec, or a URL. The editor completes keys, choices, GPU models, instance types
by cloud and MIG profiles; an unknown model or type is no error there. A cluster has the fields of its `provider`.
`${NAME}` is allowed in any text. Rules across several fields, and those of each cloud, are checked by `gpukube
validate`.

Tried with yaml-language-server 1.25: completion at every place named here, hover over keys, and one message per
mistake in a bad file (`GPUKUBE_TEST_YAML_LS=/path/to/yaml-language-server pytest tests/docs/test_editor.py` does it
again). Other tools can use the schema as well: `check-jsonschema --schemafile gpukube.schema.json pools.yaml`."""


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
    """List the fields of a pool, all levels; those that only repeat a provider's name are said with their mapping."""
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
