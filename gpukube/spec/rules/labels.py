"""Checks of a pool's labels and taints: syntax, and keys of Kubernetes, gpukube, and the NVIDIA stack.

In scope: checks for every cloud. Out of scope: keys that one cloud rejects (the providers' rules.py).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube.spec.kubesyntax import MOST_NAME, MOST_PREFIX, explain_key, explain_value
from gpukube.spec.source.positions import is_unknown
from gpukube.spec.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.spec.rules.subject import Subject
    from gpukube.spec.source.positions import Path

RESERVED_PREFIX: Final = "gpukube.io/"
"""Prefix of gpukube's own keys; for NVIDIA's labels that gpukube sets on some pools see core.owners.labels."""
GPU_TAINT_KEY: Final = "nvidia.com/gpu"

_WRITTEN: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        re.compile(
            r"nvidia\.com/(gpu\.(product|count|memory|replicas|family|machine|mode|sharing-strategy|clique"
            r"|multiprocessors|(compute|slices|engines)\..+)|mig\.(strategy|capable)|mig-.+|mps\.capable|vgpu\.present"
            r"|cuda\..+|gfd\.timestamp)"
        ),
        "GPU feature discovery",
    ),
    (re.compile(r"nvidia\.com/(gpu\.deploy\.(?!operands$).+|mig\.config\.state)"), "the GPU Operator"),
    (re.compile(r"feature\.node\.kubernetes\.io/.+"), "node-feature-discovery"),
)
"""Labels of the NVIDIA stack that describe a node -> who sets them (NVIDIA/k8s-device-plugin v0.20.0
internal/lm; NVIDIA/gpu-operator controllers/state_manager.go; #603; NVIDIA/k8s-device-plugin#1213)."""


def check_labels(s: Subject) -> Iterator[Finding]:
    """Check keys and values of labels, and whether another component sets them."""
    for key, value in s.pool.labels.items():
        yield from _check_key(s, ("labels", key), key, "label-syntax")
        if expected := explain_value(value):
            yield _bad_value(s, "label-syntax", ("labels", key), value, expected)
        if writer := next((who for pattern, who in _WRITTEN if pattern.fullmatch(key)), ""):
            yield Finding(
                "written-label",
                s.at.key_at(("labels", key)),
                f"{s.at.path('labels')} has {quoted(key)}, which {writer} sets on nodes",
                fix="remove it, or use another key",
                why="a manual value is overwritten, or does not match the node",
                severity="warning",
            )


def check_taints(s: Subject) -> Iterator[Finding]:
    """Check keys and values of taints, and that there are no duplicates."""
    first: dict[tuple[str, str], str] = {}
    if s.pool.gpu_taint:
        first[GPU_TAINT_KEY, "NoSchedule"] = "gpuTaint"
    for index, taint in enumerate(s.pool.taints):
        path: Path = ("taints", index)
        yield from _check_key(s, (*path, "key"), taint.key, "taint-syntax")
        if expected := explain_value(taint.value):
            yield _bad_value(s, "taint-syntax", (*path, "value"), taint.value, expected)
        identity = (taint.key, taint.effect)
        if is_unknown(path, s.unknown):
            continue
        if identity in first:
            message = f"repeats {quoted(taint.key)} with {taint.effect}, as in {first[identity]}"
            fix = "remove it, or write gpuTaint: false" if first[identity] == "gpuTaint" else "keep one of them"
            yield s.finding("duplicate-taint", path, message, fix)
        first.setdefault(identity, f"taints[{index}]")


def _bad_value(s: Subject, code: str, path: Path, value: str, expected: str) -> Finding:
    """Return the finding for an invalid label or taint value; suggest a valid one unless it would reveal a variable."""
    plain = unicodedata.normalize("NFKD", value.replace("ß", "ss")).encode("ascii", "ignore").decode()
    near = re.sub("[^A-Za-z0-9_.-]+", "-", plain)[:MOST_NAME].strip("-_.")
    fix = (
        "set the variable to a value in this format"
        if s.at.origin.spellings.get(s.at.mark_at(path))
        else f"write {near or quoted('')}"
    )
    return s.finding(code, path, f"is {s.seen(path, value)}; {expected}", fix)


def _check_key(s: Subject, path: Path, key: str, code: str) -> Iterator[Finding]:
    """Check a label or taint key: its syntax, and that it is not gpukube's."""
    expected = explain_key(key)
    if not expected and not key.startswith(RESERVED_PREFIX):
        return
    in_list = code == "taint-syntax"
    where = s.at.at(path) if in_list else s.at.key_at(path)
    seen = f"{s.at.path(path)} is {s.seen(path, key)}" if in_list else f"{s.at.path(path[:-1])} has {quoted(key)}"
    if expected:
        yield Finding(code, where, f"{seen}; {expected}", fix=_key_fix(key))
    else:
        why = f"labels with {RESERVED_PREFIX} record the owner of a pool"
        yield Finding("reserved-key", where, f"{seen}, which gpukube sets itself", fix="remove it", why=why)


def _key_fix(key: str) -> str:
    prefix, _, name = key.rpartition("/")
    if len(prefix) > MOST_PREFIX or len(name) > MOST_NAME:
        return f"write a shorter key: at most {MOST_NAME} characters, and {MOST_PREFIX} before a slash"
    return "write [prefix/]name"
