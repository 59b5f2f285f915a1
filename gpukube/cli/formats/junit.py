"""Documents as JUnit XML, which CI systems show test by test.

There is a suite per cluster, and a case per pool, node, and probe; findings in files have a suite per file. A problem
that makes the command fail is a failure, unread data is an error, and what was not attempted is skipped; warnings pass
and carry their text. There is always at least one case: readers treat an empty report as broken.

Jenkins and GitLab read this dialect: jenkinsci/xunit-plugin, types/model/xsd/junit-10.xsd. Out of scope: the content of
a report (engine.documents), and cleaning: the document has no character that XML forbids (gpukube.visible).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from gpukube.cli.formats.notes import fit_lines, reason_lines, sum_lines, unfit_words, workload_name
from gpukube.cli.kinds import REPORTS
from gpukube.cli.rendering.lines import QUIET_ACTIONS, difference_lines, plural
from gpukube.cli.rendering.words import (
    cost_words,
    drift_words,
    order_words,
    orders_of,
    release_acts,
    releases_of,
    repair_words,
)
from gpukube.engine.documents.shards import part_line
from gpukube.rule_ids import rule_label

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gpukube.engine.documents.shapes.doctor import DoctorDocument, PatientPart
    from gpukube.engine.documents.shapes.fit import FitDocument, FittedPart
    from gpukube.engine.documents.shapes.parts import Change, Diagnostic
    from gpukube.engine.documents.shapes.plan import ClusterPart, PlanDocument, PoolPart
    from gpukube.engine.documents.shapes.report import (
        ClusterOutcome,
        Finding,
        LintDocument,
        NodeProof,
        PoolOutcome,
        Probe,
        Proof,
        ReportDocument,
        ValidationDocument,
    )

    Suites = Iterator[tuple[str, Iterable[ET.Element]]]

_RESULTS: Final = ("failure", "error", "skipped")


def junit_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Return a document as the lines of one XML document."""
    command = f"gpukube {document['kind'].lower()}"
    root = ET.Element("testsuites", {"name": command})
    for name, cases in _MAKERS[document["kind"]](document):
        _add_suite(root, f"{command} {name}", [*cases] or [_case(name, "nothing to do")])
    if document.get("merged") and (line := part_line(document)):
        _add_suite(root, f"{command} shards", [_with(_case("shards", "all there"), "error", line, "shards-missing")])
    if not len(root):
        case = _case(command, "nothing to do")
        _output(case, sum_lines(document))
        _add_suite(root, command, [case])
    _count(root, [case for suite in root for case in suite])
    del root.attrib["skipped"]  # the schema allows it on suites only
    ET.indent(root)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield from ET.tostring(root, encoding="unicode").splitlines()


def _add_suite(root: ET.Element, name: str, cases: list[ET.Element]) -> None:
    suite = ET.SubElement(root, "testsuite", {"name": name})
    suite.extend(cases)
    _count(suite, cases)


def _count(element: ET.Element, cases: list[ET.Element]) -> None:
    """Set the counts, which readers trust more than the cases."""
    element.set("tests", str(len(cases)))
    for result, name in zip(_RESULTS, ("failures", "errors", "skipped"), strict=True):
        element.set(name, str(sum(case.find(result) is not None for case in cases)))


def _planned(document: PlanDocument) -> Suites:
    diff = document["kind"] == "Diff"
    for cluster in document["clusters"]:
        yield cluster["cluster"], list(_planned_cluster(cluster, diff=diff))
    if document["warnings"]:
        yield "spec", [_finding_case("spec", found) for found in document["warnings"]]


def _planned_cluster(cluster: ClusterPart, *, diff: bool) -> Iterator[ET.Element]:
    """Return the cases of a cluster; in a diff every difference fails, in a plan only what is impossible."""
    name = cluster["cluster"]
    yield from _unreadable(name, cluster["error"])
    yield from (_finding_case(name, found) for found in cluster["diagnostics"])
    if cluster["unknown"]:
        yield _with(_case(name, "inside the cluster"), "skipped", cluster["unknown"])
    yield from (_planned_pool(name, pool, diff=diff) for pool in cluster["pools"])
    for unplanned in cluster["unplanned"]:
        yield _with(_case(name, unplanned["pool"]), "error", "the cluster could not be read")
    for release in (release for release in releases_of(cluster) if release["action"] != "none"):
        case = _case(name, f"release {release['namespace']}/{release['name']}")
        lines = [f"{release['action']}: {release['why']}", *map(drift_words, release["drift"])]
        if release["action"] == "unknown":
            _result(case, "skipped", lines[0])
        elif release["action"] == "conflict" or (diff and release_acts(release)):
            _result(case, "failure", lines[0], "release", "\n".join(lines))
        else:
            _output(case, lines)
        yield case
    for repair in cluster["nodeRepairs"]:
        case = _case(f"{name}.{repair['pool']}", f"{repair['node']}: {repair['field']}")
        yield _with(case, "failure", repair_words(repair), "node-repair") if diff else case
    for order in orders_of(cluster):
        case = _case(name, order["object"])
        yield _with(case, "failure", f"{order['action']}: {order_words(order)}", "order") if diff else case
    for extra in cluster["undeclared"]:
        case, text = _case(name, extra["pool"]), f'belongs to "{extra["owner"]}", and the spec does not declare it'
        yield _with(case, "failure", text, "undeclared") if diff else case


def _planned_pool(cluster: str, pool: PoolPart, *, diff: bool) -> ET.Element:
    case, action = _case(cluster, pool["pool"]), pool["action"]
    errors = [found for found in pool["diagnostics"] if found["severity"] == "error"]
    others = [found for found in pool["diagnostics"] if found["severity"] != "error"]
    changes = [line for change in pool["changes"] for line in _change_lines(change)]
    costs = [f"costs {cost_words(pool['loss'])}"] if pool["loss"] else []
    lines = [f"{action}: {pool['why']}", *changes, *costs]
    if errors or action == "conflict" or (diff and action not in QUIET_ACTIONS):
        message = errors[0]["message"] if errors else lines[0]
        kind = errors[0]["code"] if errors else f"pool-{action}"
        _result(case, "failure", message, kind, "\n".join([*lines, *_diagnostic_lines(errors)]))
        lines = []
    _output(case, [*lines, *_diagnostic_lines(others)])
    return case


def _change_lines(change: Change) -> Iterator[str]:
    first, *items = difference_lines(change["field"], change["old"], change["new"])
    yield f"{first} [{change['kind']}]: {change['sentence']}"
    yield from items


def _found(document: ValidationDocument | LintDocument) -> Suites:
    """Return a suite per file: a case per finding, or one that passes."""
    by_file: dict[str, list[Diagnostic]] = defaultdict(list, {file: [] for file in document["files"]})
    for found in (*document["errors"], *document["warnings"], *document["hints"]):
        by_file[found["position"]["file"] if found["position"] else found["where"]].append(found)
    for file, findings in by_file.items():
        yield file, [_finding_case(file, one) for one in findings] or [_case(file, "no findings")]


def _finding_case(group: str, found: Diagnostic) -> ET.Element:
    place = found["position"]
    where = f"{place['line']}:{place['column']}" if place else found["where"]
    case = _case(group, f"{where} {rule_label(found['code'])}")
    if found["severity"] == "error":
        return _with(case, "failure", found["message"], found["code"], "\n".join(_diagnostic_lines([found])))
    _output(case, _diagnostic_lines([found]))
    return case


def _examined(document: DoctorDocument) -> Suites:
    for cluster in document["clusters"]:
        yield cluster["cluster"], list(_examined_cluster(cluster))


def _examined_cluster(cluster: PatientPart) -> Iterator[ET.Element]:
    """Return a case per problem and per skipped check; the checks without findings are one case."""
    name = cluster["cluster"]
    yield from _unreadable(name, cluster["errors"])
    yield from _unreadable(name, cluster["unmended"], "fix")
    if cluster["made"]:
        case = _case(name, "checks")
        _output(case, [f"{plural(cluster['made'], 'check')} run", *(f"fixed: {line}" for line in cluster["mended"])])
        yield case
    for found in cluster["ailments"]:
        case = _case(f"{name}.{found['check']}", found["where"])
        lines = [found["seen"], *found["evidence"], f"why: {found['consequence']}", f"fix: {found['remedy']}"]
        if found["severity"] == "error":
            _result(case, "failure", found["seen"], found["check"], "\n".join(lines))
        else:
            _output(case, [f"warning: {lines[0]}", *lines[1:]])
        yield case
    for skipped in cluster["skipped"]:
        yield _with(_case(name, skipped["check"]), "skipped", f"not read: {skipped['reading']}")


def _fitted(document: FitDocument) -> Suites:
    by_cluster: dict[str, list[ET.Element]] = defaultdict(list)
    for part in document["workloads"]:
        by_cluster[part["cluster"]].append(_workload(part))
    for item in document["notPlaced"]:
        case = _case("not placed", f"{item['object']}, group {item['group']}" if item["group"] else item["object"])
        why = item["why"]
        by_cluster["not placed"].append(_with(case, "failure", why, "never-fits", why) if item["hasPods"] else case)
    yield from by_cluster.items()


def _workload(part: FittedPart) -> ET.Element:
    case = _case(part["cluster"], workload_name(part))
    lines = [f"{part['now']} now, {part['afterScaleUp']} after scale-up, {part['never']} never", *fit_lines(part)]
    if message := unfit_words(part):
        return _with(case, "failure", message, "never-fits", "\n".join(lines))
    _output(case, lines)
    return case


def _unreadable(group: str, errors: Iterable[Diagnostic] | None, name: str = "cluster") -> Iterator[ET.Element]:
    if found := list(errors or ()):
        text = "\n".join(_diagnostic_lines(found))
        yield _with(_case(group, name), "error", found[0]["message"], found[0]["code"], text)


def _reported(document: ReportDocument) -> Suites:
    for cluster in document["clusters"]:
        yield cluster["cluster"], list(_reported_cluster(cluster))


def _reported_cluster(cluster: ClusterOutcome) -> Iterator[ET.Element]:
    name = cluster["cluster"]
    yield from _unreadable(name, cluster["error"])
    for pool in cluster["pools"]:
        yield _pool(name, pool)
        if pool["proof"]:
            yield from (_node(f"{name}.{pool['pool']}", node) for node in pool["proof"]["nodes"])
        if pool["proof"] and pool["proof"]["probe"]:
            yield _probe(f"{name}.{pool['pool']}", pool["proof"]["probe"])


def _pool(cluster: str, pool: PoolOutcome) -> ET.Element:
    """Return the case of a pool as a whole; a problem on a node is also a failure of the node's case."""
    case = _case(cluster, pool["pool"])
    proof, error = pool["proof"], pool["error"] or []
    if pool["outcome"] == "not-attempted":
        _result(case, "skipped", pool["message"])
    elif pool["outcome"] in ("failed", "differs", "unknown"):
        first = error[0] if error else None
        message = first["message"] if first else pool["message"]
        wrong = bool(proof or not error) and pool["outcome"] != "unknown"
        resume = [f"to resume: {pool['resume']}"] if pool["resume"] else []
        text = "\n".join([*_diagnostic_lines(error), *resume])
        _result(case, "failure" if wrong else "error", message, first["code"] if first else "", text)
    if proof:
        _output(case, _proof_lines(pool["message"], proof))
    elif pool["outcome"] in ("done", "unchanged", "started"):
        _output(case, [f"{pool['outcome']}: {pool['message']}"])
    return case


def _proof_lines(message: str, proof: Proof) -> Iterator[str]:
    yield message
    yield proof["summary"]
    for name, (least, most) in proof["expected"].items():
        yield f"{name}: {proof['allocatable'].get(name, 0)} allocatable, {least} to {most} expected"


def _node(pool: str, node: NodeProof) -> ET.Element:
    case = _case(pool, node["node"])
    hard = [finding for finding in node["findings"] if finding["weight"] != "note"]
    if hard:
        _result(case, "failure", hard[0]["seen"], f"step-{hard[0]['step']}", _steps(hard))
    _output(case, _node_lines(node))
    return case


def _node_lines(node: NodeProof) -> Iterator[str]:
    for name in sorted({*node["expected"], *node["allocatable"]}):
        yield f"{name}: {node['allocatable'].get(name, 0)}, expected {node['expected'].get(name, 0)}"
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
        _result(case, "failure", probe["says"], "step-probe", _steps(probe["findings"]))
    _output(case, [f"{probe['resource']}, {probe['image']}", probe["says"], *probe["output"]])
    return case


def _case(group: str, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": group, "name": name})


def _result(case: ET.Element, result: str, message: str, kind: str = "", text: str = "") -> None:
    found = ET.SubElement(case, result, {"message": message} | ({"type": kind} if kind else {}))
    found.text = text or None


def _with(case: ET.Element, result: str, message: str, kind: str = "", text: str = "") -> ET.Element:
    _result(case, result, message, kind, text)
    return case


def _output(case: ET.Element, lines: Iterable[str]) -> None:
    if text := "\n".join(lines):
        ET.SubElement(case, "system-out").text = text


def _diagnostic_lines(found: Iterable[Diagnostic]) -> Iterator[str]:
    for item in found:
        yield f"{item['where']}: {item['severity']}[{rule_label(item['code'])}]: {item['message']}"
        yield from (f"    {line}" for line in reason_lines(item))


def _steps(findings: Iterable[Finding]) -> str:
    return "\n".join(
        line
        for item in findings
        for line in (
            f"{item['where']}: {item['step']}: {item['seen']}",
            *(f"    {word}: {text}" for word, text in (("why", item["means"]), ("fix", item["fix"])) if text),
        )
    )


_MAKERS: Final[Mapping[str, Callable[..., Suites]]] = {  # each accepts the shape of its own kind
    "Plan": _planned,
    "Diff": _planned,
    **dict.fromkeys(REPORTS, _reported),
    "Doctor": _examined,
    "Validation": _found,
    "Lint": _found,
    "Fit": _fitted,
}
