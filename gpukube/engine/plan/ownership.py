"""Decides who owns driver and plugin on the pools of the specs: facts from the providers, decisions from the solver.

In scope: the release of each cluster, the desired pools, decisions for a live cluster, explanations. Out of scope: the
rules (core.owners), loading and filtering (prepare). Makes no calls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.core.advice import advise
from gpukube.core.autoscaler_template import check_template
from gpukube.core.claims import check_claims
from gpukube.core.owners import (
    ADVERTISER_LABEL,
    ReleaseChoice,
    check_own_labels,
    choose_release,
    decide_owner,
    solve_ownership,
    with_live,
)
from gpukube.core.resolve import promise_of, resolve_targets
from gpukube.core.values import Desired, Ownership, Request
from gpukube.engine.plan.fidelity import abilities_for, check_fidelity
from gpukube.errors import Finding, MissingExtra, SpecError, Where
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.owners import Decision
    from gpukube.core.resolve import Guess
    from gpukube.core.values import NodeStack, Observed, Target
    from gpukube.provider import Provider
    from gpukube.spec.loading.load import LoadedSpec

_UNINSTALLED: Final = "uninstalled"
"""Status of a release of which only the history remains (helm uninstall --keep-history)."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The pools of a cluster, given its live state.

    Attributes:
        desired: All pools; nothing advertises on a rejected one.
        refusals: Why some cannot be served here.
        choice: The cluster's release.
    """

    desired: tuple[Desired, ...]
    refusals: tuple[Finding, ...]
    choice: ReleaseChoice


@dataclass(frozen=True, slots=True)
class Explained:
    """Everything that decides the owners for one pool.

    Attributes:
        decision: The solver's decision.
        problems: Further errors from the pool's provider.
        others: The decision for each other devicePlugin.owner, with the provider's errors for it.
        desired: The pool translated for its cloud; None if it is rejected.
    """

    decision: Decision
    problems: tuple[Finding, ...]
    others: tuple[tuple[Decision, tuple[Finding, ...]], ...]
    desired: Desired | None


def choose_releases(targets: Sequence[Target]) -> dict[str, ReleaseChoice]:
    """Choose the release of each cluster by the needs of all its pools; pools without a provider do not count."""
    facts: dict[str, list[tuple[Target, NodeStack]]] = {}
    for target in targets:
        pools = facts.setdefault(target.cluster.key, [])
        if provider := _provider(target, []):
            pools.append((target, provider.stack(target)))
    return {key: choose_release(pools) for key, pools in facts.items()}


def desire_pool(target: Target, found: list[Finding], choice: ReleaseChoice) -> Desired | None:
    """Check and translate one target; return None if it has errors, and add these to `found`."""
    provider = _provider(target, found)
    if provider is None:
        return None
    problems = _check(target, provider)
    found += problems
    ownership = decide_owner(target, provider.stack(target), choice).outcome
    if isinstance(ownership, Finding):
        # A cloud's finding on the same field is more specific.
        found += [] if any(p.where == ownership.where for p in _errors(problems)) else [ownership]
        return None
    labels = list(check_own_labels(target, ownership))
    found += labels
    if _errors([*problems, *labels]):
        return None
    found += advise(target, ownership)
    desired = provider.desired(target, ownership, promise_of(target))
    diagnosis = provider.extras.diagnosis
    found += check_template(desired, diagnosis.autoscaler if diagnosis else None)
    return desired


def sketch_pool(target: Target, choice: ReleaseChoice) -> Desired | None:
    """Return a pool with errors as it affects other pools of its cluster: its owners and release, without requests."""
    provider = _provider(target, [])
    ownership = decide_owner(target, provider.stack(target), choice).outcome if provider else None
    if not isinstance(ownership, Ownership):
        return None
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise_of(target),
        fields={},
        labels={},
        effective_taints=target.taints,
        create=Request(target.cluster.provider, "", {}),
    )


def judge_guess(guess: Guess, choice: ReleaseChoice) -> list[Finding]:
    """Return the problems of a pool that remain whatever its invalid fields were meant to be."""
    judged = []
    for target in guess.targets:
        found: list[Finding] = []
        if provider := _provider(target, found):
            found += _check(target, provider)
            ownership = solve_ownership(target, provider.stack(target), operator=choice.operator)
            if isinstance(ownership, Finding) and all(p.where != ownership.where for p in _errors(found)):
                found.append(ownership)
        judged.append(found)
    common = [problem for problem in judged[0] if all(problem in others for others in judged)]
    return [problem for problem in common if problem.severity != "hint"]


def settle_owners(
    desired: Sequence[Desired], requested: ReleaseChoice, provider: Provider, *, operator_live: bool
) -> Settled:
    """Decide the owners of one cluster's pools again, given the live state.

    Args:
        desired: The pools according to the specs alone.
        requested: The release that they need, as far as the specs determine it.
        provider: Provider of their cloud.
        operator_live: Whether a release of gpukube's GPU Operator exists, for any spec.
    """
    choice = with_live(requested, operator_live=operator_live)
    if choice == requested:
        return Settled(tuple(desired), (), choice)
    refusals: list[Finding] = []
    return Settled(tuple([_settle(pool, choice, provider, refusals) for pool in desired]), tuple(refusals), choice)


def has_operator(seen: Snapshot) -> bool:
    """Return whether a release of gpukube's GPU Operator exists, whatever the result of its last change."""
    release = seen.release_of(GPU_OPERATOR)
    return release is not None and release.status != _UNINSTALLED


def carries_operator(live: Iterable[Observed]) -> bool:
    """Return whether labels of live pools, of any owner, show that gpukube's GPU Operator serves their cluster.

    This is the best source if the cluster itself is not read.
    """
    return any(pool.labels.get(ADVERTISER_LABEL) == "operator" for pool in live)


def explain_owners(specs: Sequence[LoadedSpec], pool: str, *, operator_live: Sequence[str] = ()) -> list[Explained]:
    """Decide the owners of a pool on each of its clusters, and keep the reasoning; rejections are results here.

    Args:
        specs: The loaded specs.
        pool: Name in the spec.
        operator_live: Keys of clusters with a release of gpukube's GPU Operator.

    Raises:
        SpecError: No pool of that name could be resolved.
        MissingExtra: A provider is not installed.
    """
    targets: list[Target] = []
    problems: list[Finding] = []
    for spec in specs:
        resolved, found = resolve_targets(spec)
        targets += resolved
        problems += found
    chosen = [target for target in targets if target.pool == pool]
    if not chosen:
        raise _no_such_pool(pool, specs, problems)
    choices = choose_releases(targets)
    return [
        _explain(target, targets, with_live(choices[key], operator_live=key in operator_live))
        for target in chosen
        for key in [target.cluster.key]
    ]


def _check(target: Target, provider: Provider) -> list[Finding]:
    problems = [*provider.check(target), *check_claims(target)]
    wrong = {problem.where for problem in _errors(problems)}  # a cloud's rule for the same place is more specific
    found = check_fidelity(target, abilities_for(target, provider))
    return problems + [one for one in found if one.where not in wrong]


def _errors(problems: Iterable[Finding]) -> list[Finding]:
    return [problem for problem in problems if problem.severity == "error"]


def _settle(pool: Desired, choice: ReleaseChoice, provider: Provider, refusals: list[Finding]) -> Desired:
    ownership = decide_owner(pool.target, provider.stack(pool.target), choice).outcome
    if isinstance(ownership, Finding):
        refusals.append(ownership)
        return replace(
            pool,
            ownership=Ownership(
                driver=pool.ownership.driver, advertiser="none", config_key="", labels={}, reason=ownership.seen
            ),
        )
    if ownership == pool.ownership:
        return pool
    return provider.desired(pool.target, ownership, pool.promise)


def _explain(target: Target, pools: Sequence[Target], choice: ReleaseChoice) -> Explained:
    provider = load_provider(target.cluster.provider)
    decision = decide_owner(target, provider.stack(target), choice)
    problems = tuple(_errors(_check(target, provider)))
    answered = not problems and not isinstance(decision.outcome, Finding)
    desired = desire_pool(target, [], choice) if answered else None
    return Explained(decision, problems, tuple(_others(target, pools, choice, provider)), desired)


_OWNERS: Final[tuple[Literal["auto", "helm", "operator", "cloud", "dra", "none"], ...]] = (
    "auto", "helm", "operator", "cloud", "dra", "none",
)  # fmt: skip


def _others(
    target: Target, pools: Sequence[Target], choice: ReleaseChoice, provider: Provider
) -> Iterator[tuple[Decision, tuple[Finding, ...]]]:
    """Return the decisions if only this pool requested another owner of the plugin."""
    known = _errors(_check(target, provider))
    neighbours = [pool for pool in pools if pool.cluster.key == target.cluster.key and pool is not target]
    for owner in _OWNERS:
        if owner == target.plugin_owner:
            continue
        other = replace(target, plugin_owner=owner)
        there = choice.row == "operator-live"
        chosen = with_live(choose_releases([*neighbours, other])[target.cluster.key], operator_live=there)
        problems = [problem for problem in _errors(_check(other, provider)) if problem not in known]
        yield decide_owner(other, provider.stack(other), chosen), tuple(problems)


def _no_such_pool(pool: str, specs: Sequence[LoadedSpec], problems: Sequence[Finding]) -> SpecError:
    """Return the error that there is no such pool; or the spec's own errors if the pool could not be resolved."""
    names = sorted({written.name for spec in specs for written in spec.pools})
    if pool in names and _errors(problems):
        return SpecError.of(_errors(problems))
    return SpecError(
        f'the spec has no pool "{pool}"',
        where=Where("POOL"),
        fix=f"choose from: {', '.join(names)}",
        code="no-match",
    )


def _provider(target: Target, found: list[Finding]) -> Provider | None:
    try:
        return load_provider(target.cluster.provider)
    except MissingExtra as error:
        problem = error.diagnostics[0]
        found.append(Finding(problem.code, target.cluster.where, problem.seen, fix=problem.fix))
        return None
