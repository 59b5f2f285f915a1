"""Body of `gpukube workload render`: find the pool, write its manifest to stdout and notes to stderr."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from gpukube.catalog.learning import learn_refreshed
from gpukube.cli.stderr import write_stderr
from gpukube.core.yamltext import parse_yaml
from gpukube.engine.offers import spec_offers
from gpukube.errors import SpecError, Where
from gpukube.gpu.refusal import nearest, one_of
from gpukube.workload.offers import family_offer, members_of
from gpukube.workload.render.manifests import KINDS
from gpukube.workload.render.manifests import render as render_intent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.render.intent import Intent


def render(choices: Choices, pool: str, intent: Intent, *, runtime_env: str = "") -> None:
    """Write a manifest.

    Args:
        choices: The command line.
        pool: Name of the pool in the spec; "" for the only one.
        intent: What the manifest should run.
        runtime_env: File with a Ray runtime environment; "" for none.

    Raises:
        SpecError: The spec, the kind, or the pool is wrong, or the pool cannot run it; nothing is written.
    """
    if intent.kind not in KINDS:
        close = nearest(intent.kind, KINDS)[:3]
        raise SpecError(
            f'"{intent.kind}" is not a kind', where=Where("KIND"), fix=f"write {one_of(close)}", code="choice"
        )
    if not choices.files:
        raise SpecError("no spec given", where=Where("--file"), fix="add -f pools.yaml", code="no-file")
    learn_refreshed(os.environ, sandbox=choices.sandbox)
    offers = spec_offers(choices.files, sets=choices.sets, clusters=choices.clusters)
    offer = family_offer(members_of(_choose(offers, pool), offers))
    same_cluster = [other for other in offers if other.desired.target.cluster.key == offer.desired.target.cluster.key]
    if runtime_env:
        intent = replace(intent, runtime_env=_read_environment(runtime_env))
    rendered = render_intent(intent, offer, same_cluster)
    for note in rendered.notes:
        write_stderr(f"note: {note}")
    sys.stdout.write(rendered.text)


def _read_environment(path: str) -> dict[str, object]:
    """Read a Ray runtime environment; only Ray checks its content."""
    fix = "write a mapping, as for `ray job submit --runtime-env`: pip: [diffusers], env_vars: {...}"
    try:
        found = parse_yaml(Path(path).read_bytes())
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise SpecError(
            message, where=Where("--runtime-env"), fix="give the path of a readable file", code="file-unreadable"
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(f"{path} is not YAML", where=Where("--runtime-env"), fix=fix, code="yaml-syntax") from error
    if not isinstance(found, dict) or not found or not all(isinstance(key, str) for key in found):
        raise SpecError(
            f"{path} does not contain a mapping", where=Where("--runtime-env"), fix=fix, code="workload-option"
        )
    return found


def _choose(offers: Sequence[PoolOffer], name: str) -> PoolOffer:
    """Return the named pool, or the only one of a spec with one pool on one cluster."""
    names = dict.fromkeys(offer.desired.target.pool for offer in offers)
    firsts = dict.fromkeys(offer.desired.target.family or offer.desired.target.pool for offer in offers)
    if not name and len(firsts) > 1:
        raise SpecError(
            f"the spec has {len(firsts)} pools",
            where=Where("--pool"),
            fix=f"add --pool {one_of(firsts)}",
            code="no-match",
        )
    name = name or next(iter(firsts), "")
    found = [offer for offer in offers if name == offer.desired.target.pool]
    if not found:
        fix = f"did you mean {nearest(name, names)[0]}?" if names else "add a pool to the spec"
        raise SpecError(f'the spec has no pool "{name}"', where=Where("--pool"), fix=fix, code="no-match")
    if len(found) > 1:
        keys = one_of(offer.desired.target.cluster.key for offer in found)
        message = f"pool {found[0].desired.target.pool} is on {len(found)} clusters"
        raise SpecError(message, where=Where("--cluster"), fix=f"add --cluster {keys}", code="no-match")
    return found[0]
