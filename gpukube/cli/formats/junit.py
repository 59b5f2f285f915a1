"""Reports as JUnit XML, which CI systems show test by test: a suite per cluster, a case per pool, node and probe.

The dialect is the one that Jenkins and GitLab read: testsuites, testsuite, testcase with failure, error or skipped, and
system-out. Must not live here: what a report says (engine.documents),
or cleaning: the document has no character that XML cannot hold (gpukube.visible).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.engine.documents.shapes.parts import Diagnostic
    from gpukube.engine.documents.shapes.report import (
        ClusterOutcome,
        Finding,
        NodeProof,
        PoolOutcome,
        Probe,
        Proof,
        ReportDocument,
    )

_RESULTS: Final = ("failure", "error", "skipped")


def junit_lines(document: ReportDocument) -> Iterator[str]:
    """Write a report as the lines of one XML document."""
    command = f"gpukube {document['kind'].lower()}"
    root = ET.Element("testsuites", {"name": command})
    for cluster in document["clusters"]:
        suite = ET.SubElement(root, "testsuite", {"name": f"{command} {cluster['cluster']}"})
        suite.extend(_cases(cluster))
        _count(suite, list(suite))
    _count(root, [case for suite in root for case in suite])
    ET.indent(root)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from ET.tostring(root, encoding="unicode").splitlines()


def _count(element: ET.Element, cases: list[ET.Element]) -> None:
    """Write the numbers that readers trust more than the cases."""
    element.set("tests", str(len(cases)))
    for result, name in zip(_RESULTS, ("failures", "errors", "skipped"), strict=True):
        element.set(name, str(sum(case.find(result) is not None for case in cases)))


def _cases(cluster: ClusterOutcome) -> Iterator[ET.Element]:
    name = cluster["cluster"]
    if cluster["error"]:
        case = _case(name, "cluster")
        _result(case, "error", cluster["error"][0]["message"], cluster["error"][0]["code"], _told(cluster["error"]))
        yield case
    for pool in cluster["pools"]:
        yield _pool(name, pool)
        if pool["proof"]:
            yield from (_node(f"{name}.{pool['pool']}", node) for node in pool["proof"]["nodes"])
        if pool["proof"] and pool["proof"]["probe"]:
            yield _probe(f"{name}.{pool['pool']}", pool["proof"]["probe"])


def _pool(cluster: str, pool: PoolOutcome) -> ET.Element:
    """Make the case of a pool as a whole; what is wrong on a node is the node's failure too."""
    case = _case(cluster, pool["pool"])
    proof, error = pool["proof"], pool["error"] or []
    if pool["outcome"] == "not-attempted":
        _result(case, "skipped", pool["message"])
    elif pool["outcome"] in ("failed", "differs"):
        first = error[0] if error else None
        message = first["message"] if first else pool["message"]
        _result(
            case, "failure" if proof or not error else "error", message, first["code"] if first else "", _told(error)
        )
    if proof:
        _output(case, _proof_lines(pool["message"], proof))
    return case


def _proof_lines(message: str, proof: Proof) -> Iterator[str]:
    yield message
    yield proof["summary"]
    for name, (least, most) in proof["expected"].items():
        yield f"{name}: {proof['allocatable'].get(name, 0)} allocatable, {least} to {most} promised"


def _node(pool: str, node: NodeProof) -> ET.Element:
    case = _case(pool, node["node"])
    hard = [finding for finding in node["findings"] if finding["weight"] != "note"]
    if hard:
        _result(case, "failure", hard[0]["seen"], f"step-{hard[0]['step']}", _found(hard))
    _output(case, _node_lines(node))
    return case


def _node_lines(node: NodeProof) -> Iterator[str]:
    for name in sorted({*node["expected"], *node["allocatable"]}):
        yield f"{name}: {node['allocatable'].get(name, 0)}, promised {node['expected'].get(name, 0)}"
    for check in node["checks"]:
        requested = "" if check["holds"] else f", not {check['expected'] or 'absent'}"
        yield f"{check['what']}: {check['seen'] or 'absent'}{requested}"
    for finding in node["findings"]:
        if finding["weight"] == "note":
            yield f"note: {finding['seen']}"


def _probe(pool: str, probe: Probe) -> ET.Element:
    case = _case(pool, "probe")
    if probe["status"] == "skipped":
        _result(case, "skipped", probe["says"])
    elif probe["status"] == "failed":
        _result(case, "failure", probe["says"], "step-probe", _found(probe["findings"]))
    _output(case, [f"{probe['resource']}, {probe['image']}", probe["says"], *probe["output"]])
    return case


def _case(group: str, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": group, "name": name})


def _result(case: ET.Element, result: str, message: str, kind: str = "", text: str = "") -> None:
    found = ET.SubElement(case, result, {"message": message} | ({"type": kind} if kind else {}))
    found.text = text or None


def _output(case: ET.Element, lines: Iterable[str]) -> None:
    ET.SubElement(case, "system-out").text = "\n".join(lines)


def _told(found: Iterable[Diagnostic]) -> str:
    return "\n".join(
        line
        for item in found
        for line in (
            f"{item['where']}: {item['severity']}[{rule_label(item['code'])}]: {item['message']}",
            *(f"    {word}: {text}" for word, text in (("why", item["why"]), ("fix", item["fix"])) if text),
        )
    )


def _found(findings: Iterable[Finding]) -> str:
    return "\n".join(
        line
        for item in findings
        for line in (
            f"{item['where']}: {item['step']}: {item['seen']}",
            *(f"    {word}: {text}" for word, text in (("why", item["means"]), ("fix", item["fix"])) if text),
        )
    )
