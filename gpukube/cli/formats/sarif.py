"""Findings of `validate` and `workload lint` as SARIF 2.1.0, which code scanning and editors read.

Source: OASIS SARIF 2.1.0 errata 01; GitHub's additional requirements (a location for every result, sentences for every
rule): docs.github.com "SARIF support for code scanning". A finding outside files (an argument of --set, a missing file)
is not a result, which would need a location, but a notification about the tool's configuration.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from importlib.metadata import PackageNotFoundError, metadata
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from gpukube import __version__
from gpukube.cli.formats.data import quoted_json
from gpukube.errors import ExitCode
from gpukube.rule_ids import rule_id, rule_page, rule_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.engine.documents.shapes.parts import Diagnostic
    from gpukube.engine.documents.shapes.report import LintDocument, ValidationDocument

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT: Final = "%SRCROOT%"
"""Base of the paths: the directory that gpukube runs in, which is the repository in CI."""
_LEVELS: Final = {"error": "error", "warning": "warning", "hint": "note"}
_PRINT: Final = "gpukubeFinding/v1"


def sarif_lines(document: ValidationDocument | LintDocument) -> Iterator[str]:
    """Return the log as JSON."""
    yield from quoted_json(sarif_log(document), indent=2).splitlines()


def sarif_log(document: ValidationDocument | LintDocument) -> dict[str, object]:
    """Return a validation as a SARIF log of one run."""
    findings: list[tuple[Diagnostic, str | None]] = [
        *((one, None) for level in (document["errors"], document["warnings"], document["hints"]) for one in level),
        *((one["finding"], one["reason"]) for one in document["silenced"]),
    ]
    codes = list(dict.fromkeys(one["code"] for one, _ in findings))
    driver: dict[str, object] = {"name": "gpukube", "version": __version__, "rules": [_rule(code) for code in codes]}
    if home := _documentation():
        driver["informationUri"] = home
    placed = [(one, reason) for one, reason in findings if one["position"]]
    run: dict[str, object] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The directory that gpukube ran in."}}},
        "invocations": [_invocation(document, [one for one, _ in findings if not one["position"]], codes)],
        "results": list(_results(placed, codes)),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _invocation(
    document: ValidationDocument | LintDocument, apart: Sequence[Diagnostic], codes: Sequence[str]
) -> dict[str, object]:
    return {
        "executionSuccessful": True,
        "exitCode": int(ExitCode.DONE if document["valid"] else ExitCode.BAD_INPUT),
        "toolConfigurationNotifications": [
            {
                "level": _LEVELS[one["severity"]],
                "message": {"text": f"{one['where']}: {_text(one)}"},
                "associatedRule": {"id": _id(one), "index": codes.index(one["code"])},
            }
            for one in apart
        ],
    }


def _rule(code: str) -> dict[str, object]:
    sentence, page = rule_title(code), rule_page(code)
    rule: dict[str, object] = {
        "id": rule_id(code) or code,
        "name": code,
        "shortDescription": {"text": sentence},
        "fullDescription": {"text": sentence},
        "help": {"text": f"{sentence} Examples: {page}"},
    }
    if home := _documentation():
        rule["helpUri"] = f"{home.rstrip('/')}/{page}"
    return rule


def _documentation() -> str:
    """Return the URL of the documentation from the installed package; "" if it has none."""
    try:
        links: list[str] = metadata("gpukube").get_all("Project-URL") or []
    except PackageNotFoundError:  # run from a source tree
        return ""
    by_name = {name.strip(): address.strip() for name, _, address in (link.partition(",") for link in links)}
    return by_name.get("Documentation", "")


def _results(findings: Sequence[tuple[Diagnostic, str | None]], codes: Sequence[str]) -> Iterator[dict[str, object]]:
    """Return findings in files as results; if any is silenced, each result states whether it is."""
    numbers = {code: index for index, code in enumerate(codes)}
    repeated: Counter[str] = Counter()
    silenced = any(reason is not None for _, reason in findings)
    for one, reason in findings:
        position = one["position"]
        if position is None:
            continue
        uri, base = _uri(position["file"])
        # Stable while lines and pools move: the rule, the file, and the message without indices.
        message = re.sub(r"\[\d+\]|:\d+:\d+", "", one["message"])
        print_ = hashlib.sha256(f"{_id(one)}\n{uri}\n{message}".encode()).hexdigest()[:32]
        repeated[print_] += 1
        result: dict[str, object] = {
            "ruleId": _id(one),
            "ruleIndex": numbers[one["code"]],
            "level": _LEVELS[one["severity"]],
            "message": {"text": _text(one)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri, **({"uriBaseId": base} if base else {})},
                        "region": {"startLine": position["line"], "startColumn": position["column"]},
                    },
                    **({"logicalLocations": [{"fullyQualifiedName": one["field"]}]} if one["field"] else {}),
                }
            ],
            "partialFingerprints": {_PRINT: f"{print_}:{repeated[print_]}"},
        }
        if silenced:
            kept = [{"kind": "inSource", "justification": reason}] if reason is not None else []
            result["suppressions"] = kept
        yield result


def _id(one: Diagnostic) -> str:
    return one["id"] or one["code"]


def _text(one: Diagnostic) -> str:
    tail = [f"{name}: {text}" for name, text in (("why", one["why"]), ("fix", one["fix"])) if text]
    return "\n".join([one["message"], *tail])


def _uri(file: str) -> tuple[str, str]:
    """Return a file name, relative to the current directory or absolute if outside, and the base of a relative name."""
    path = os.path.relpath(file)
    if path == os.pardir or path.startswith(os.pardir + os.sep):
        return f"file://{quote(os.path.abspath(file))}", ""  # noqa: PTH100 - no links followed: the name as it was given
    return quote(path.replace(os.sep, "/")), ROOT
