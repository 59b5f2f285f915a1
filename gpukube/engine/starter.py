"""A starter spec: converts a few answers to commented YAML that validates, or reports what is wrong with an answer.

In scope: the text, its data from the catalog, and checking it with the loader and the providers. Out of scope:
questions, flags, and files (cli.init). Pure except for what `prepare` loads: the providers' rules.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Final

from gpukube.engine.plan.prepare import prepare
from gpukube.errors import SpecError, Where
from gpukube.gpu.catalog import CatalogError, machines, parse_model, resolve_machine
from gpukube.gpu.mig import profiles
from gpukube.spec.dump import dump_scalar
from gpukube.spec.loading.load import load_specs
from gpukube.spec.model import PROVIDERS
from gpukube.spec.reference.fieldguide import explain_field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.errors import Finding
    from gpukube.spec.reference.fieldguide import FieldPage

_FROM: Final = "-"
_CLUSTER_FIELD: Final = re.compile(r"clusters\.[^ .]+\.(?P<key>\w+) ")
_EXAMPLE_GPU: Final = "A100-40GB"
_EXAMPLE_MIG: Final = "1g.5gb"
_LONGEST_KEY: Final = 58
_LONGEST_POOL: Final = 10
"""AKS accepts twelve characters, of which a replacement needs two."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers for a starter spec; empty ones are not answered yet.

    Attributes:
        providers: Clouds, each with one cluster.
        names: Provider -> name of the cluster.
        identity: Key of a cluster's field (account, region, ...) -> value; no key belongs to two clouds.
        owner: metadata.name; the first cluster's name if empty.
        gpu: Model.
        count: GPUs per node; 0 for the minimum that all clouds offer.
        nodes: Nodes of the pool.
        mig: Profile, or "".
        replicas: Shares of a GPU by time-slicing; 0 for none.
        spot: Buy Spot machines.
    """

    providers: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    gpu: str = ""
    count: int = 0
    nodes: int = 1
    mig: str = ""
    replicas: int = 0
    spot: bool = False


def identity_fields(provider: str) -> tuple[FieldPage, ...]:
    """List the fields that identify a cluster in addition to its name: account and region, ...; () if unknown."""
    fields = explain_field("clusters").fields
    return tuple(page for page in fields if page.required and page.providers == (provider,))


def flag_of(key: str) -> str:
    """Return the flag of a field: resourceGroup -> --resource-group."""
    return "--" + re.sub("[A-Z]", lambda found: f"-{found.group().lower()}", key)


def gpus_on(providers: Sequence[str]) -> tuple[str, ...]:
    """List the current models that all of these clouds offer as whole GPUs, in the catalog's order."""
    each = [
        {m.model.name for m in machines(provider) if m.status == "current" and m.gpus >= 1} for provider in providers
    ]
    return tuple(name for name in explain_field("gpu.model").known if each and all(name in names for names in each))


def gpus_for(answers: Answers) -> Iterator[str]:
    """Yield the models that are compatible with the other answers, on all clouds of the clusters."""
    answers = replace(answers, names={}, identity={}, owner="")
    for gpu in gpus_on(answers.providers):
        fits_cut = not answers.mig or answers.mig in offered_profiles(gpu)
        fits_count = not answers.count or answers.count in offered_counts(gpu, answers.providers)
        if fits_cut and fits_count and not check_answers(replace(answers, gpu=gpu), {}):
            yield gpu


def cheapest_gpu(gpus: Sequence[str], providers: Sequence[str]) -> str:
    """Return the model whose smallest machine without Arm is cheapest on the first cloud; "" if there is none."""
    ordinary = [m for m in machines(providers[0]) if m.gpus >= 1 and m.arch == "amd64"]
    prices = [(m.price_usd_h or inf, m.model.name) for m in ordinary]
    return min(((price, gpu) for price, gpu in prices if gpu in gpus), default=(inf, ""))[1]


def offered_counts(gpu: str, providers: Sequence[str]) -> tuple[int, ...]:
    """List the numbers of GPUs per node that all of these clouds offer for a model; () for an unknown one."""
    counts = {round(m.gpus) for m in machines() if m.gpus >= 1}
    return tuple(sorted(n for n in counts if providers and all(_is_offered(gpu, n, cloud) for cloud in providers)))


def _is_offered(gpu: str, count: int, provider: str) -> bool:
    try:
        resolve_machine(provider, parse_model(gpu), count)
    except CatalogError:
        return False
    return True


def offered_profiles(gpu: str) -> tuple[str, ...]:
    """List the MIG profiles of a model; () for one without MIG."""
    try:
        return tuple(profile.name for profile in profiles(parse_model(gpu)))
    except CatalogError:
        return ()


def check_answers(answers: Answers, environ: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the errors of loader, catalog, and clouds for the answers so far.

    Missing answers are filled with the format's examples. Each error is placed at the flag that it is about.
    """
    lines = list(_lines(_filled(answers)))
    text = "".join(f"{line}\n" for line, _ in lines)
    try:
        prepare(load_specs([_FROM], stdin=io.StringIO(text), environ=environ))
    except SpecError as error:
        return tuple(_at_flag(found, lines) for found in error.diagnostics if found.severity == "error")
    return ()


def render_starter(answers: Answers) -> str:
    """Return the spec. Complete answers without findings from `check_answers` result in a valid one."""
    return "".join(f"{line}\n" for line, _ in _lines(_counted(answers)))


def with_examples(answers: Answers) -> Answers:
    """Fill open answers with examples for the emulated clouds: every cloud, and A100s with MIG."""
    providers = answers.providers or PROVIDERS
    if not answers.gpu and not answers.mig and not answers.replicas:
        answers = replace(answers, gpu=_EXAMPLE_GPU, mig=_EXAMPLE_MIG)
    return _filled(replace(answers, providers=providers))


def _at_flag(found: Finding, lines: Sequence[tuple[str, str]]) -> Finding:
    """Place a finding at the flag whose line contains it, or whose field it names."""
    line = found.where.line if found.where.source == _FROM else 0
    flag = lines[line - 1][1] if 0 < line <= len(lines) else ""
    if named := _CLUSTER_FIELD.match(found.seen):
        flag = flag_of(named["key"])
    return replace(found, where=Where(flag or "init"))


def _filled(answers: Answers) -> Answers:
    """Fill missing answers with the format's examples."""
    providers = answers.providers or PROVIDERS[:1]
    pages = [page for provider in providers for page in identity_fields(provider)]
    examples = {page.path.rpartition(".")[2]: str(page.examples[0]) for page in pages if page.examples}
    filled = replace(
        answers,
        providers=providers,
        names={provider: answers.names.get(provider) or "train" for provider in providers},
        identity=examples | {key: value for key, value in answers.identity.items() if value},
        gpu=answers.gpu or _any_gpu(replace(answers, providers=providers)),
    )
    return _counted(filled)


def _any_gpu(answers: Answers) -> str:
    """Return a model that is compatible with the other answers; if there is none, one with MIG."""
    requested = Answers(answers.providers, mig=answers.mig, count=answers.count)
    cut = (gpu for gpu in gpus_on(PROVIDERS) if offered_profiles(gpu))
    return next(gpus_for(requested), "") or next(cut)


def _counted(answers: Answers) -> Answers:
    counts = offered_counts(answers.gpu, answers.providers) if not answers.count else ()
    return replace(
        answers,
        count=answers.count or (counts[0] if counts else 1),
        owner=answers.owner or answers.names[answers.providers[0]],
    )


def _lines(answers: Answers) -> Iterator[tuple[str, str]]:
    """Yield the lines, each with the flag that determines it."""
    yield "# GPU node pools, created with: gpukube pool apply -f FILE", ""
    yield "# What a field means: gpukube explain pools.gpu; for editors: gpukube schema", ""
    yield "apiVersion: gpukube.io/v1alpha1", ""
    yield "kind: GPUNodePools", ""
    yield "metadata:", ""
    yield "  # The owner: a label of every pool of this spec. Other pools are not changed.", ""
    flag = "--name" if answers.owner in answers.names.values() else "--owner"
    yield f"  name: {dump_scalar(answers.owner)}", flag
    yield "", ""
    yield from _cluster_lines(answers)
    yield "", ""
    yield from _pool_lines(answers)


def _cluster_lines(answers: Answers) -> Iterator[tuple[str, str]]:
    yield "# The clusters, by keys of your choice, and the account of each, which is", ""
    yield "# compared with your credentials before anything else.", ""
    yield "clusters:", "--provider"
    for provider in answers.providers:
        yield f"  {_key(provider, answers)}:", "--name"
        yield f"    provider: {dump_scalar(provider)}", "--provider"
        for page in identity_fields(provider):
            key = page.path.rpartition(".")[2]
            yield f"    {key}: {dump_scalar(answers.identity[key])}", flag_of(key)
        yield f"    name: {dump_scalar(answers.names[provider])}", "--name"


def _pool_lines(answers: Answers) -> Iterator[tuple[str, str]]:
    keys = ", ".join(_key(provider, answers) for provider in answers.providers)
    yield "# The pools: each is created on each of its clusters.", ""
    yield "pools:", ""
    yield f"  - name: {_pool_name(answers)}", "--gpu"
    yield f"    clusters: [{keys}]", "--provider"
    yield "    # These choose the instance type on each cloud; or write instanceType.", ""
    yield "    gpu:", "--gpu"
    yield f"      model: {dump_scalar(answers.gpu)}", "--gpu"
    yield f"      count: {answers.count}", "--count"
    yield "    nodes:", "--nodes"
    yield f"      count: {answers.nodes}", "--nodes"
    yield "      # instead of count: autoscaling: {min: 0, max: 5}", ""
    yield from _capacity_lines(answers)
    yield from _sharing_lines(answers)
    yield "    # More fields to uncomment; all fields: gpukube explain pools --recursive", ""
    for line in _MORE:
        yield f"    # {line}", ""


_MORE: Final = (
    "disk: {sizeGiB: 256}",
    "labels: {team: vision}",
    "taints: [{key: dedicated, value: vision, effect: NoSchedule}]",
    "deletionProtection: true",
)


def _capacity_lines(answers: Answers) -> Iterator[tuple[str, str]]:
    yield "    capacity:", "--spot"
    yield f"      type: {'spot' if answers.spot else 'on-demand'} # on-demand, spot or reserved", "--spot"


def _sharing_lines(answers: Answers) -> Iterator[tuple[str, str]]:
    if not answers.mig and not answers.replicas:
        yield "    sharing: {} # whole GPUs; or mig, timeSlicing, mps", ""
        return
    yield "    sharing:", "--mig" if answers.mig else "--replicas"
    if answers.mig:
        yield "      mig:", "--mig"
        yield f"        profile: {dump_scalar(answers.mig)}", "--mig"
        yield "        strategy: single # all as nvidia.com/gpu; mixed: nvidia.com/mig-...", "--mig"
    if answers.replicas:
        yield "      timeSlicing:", "--replicas"
        yield f"        replicas: {answers.replicas} # shares of each device; memory is not isolated", "--replicas"


def _key(provider: str, answers: Answers) -> str:
    """Return the key of a cluster: its name and its cloud, in the characters that keys allow."""
    name = re.sub("[^A-Za-z0-9_-]", "-", answers.names[provider])[:_LONGEST_KEY].strip("-_")
    cloud = re.sub("[^a-z0-9]", "", provider)[:4]
    return f"{name or 'cluster'}-{cloud or 'x'}"


def _pool_name(answers: Answers) -> str:
    """Name the pool by its GPU, in a form that every cloud accepts: a100, a100mig."""
    chip = re.sub("[^a-z0-9]", "", answers.gpu.casefold().split("-")[0]).lstrip("0123456789") or "gpu"
    ending = "mig" if answers.mig else ""
    return f"{chip[: _LONGEST_POOL - len(ending)]}{ending}"
