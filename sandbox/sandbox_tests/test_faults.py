"""What a fault may say, and which requests and operations it strikes; no process is needed for that."""

from __future__ import annotations

import pytest

from gpukube_sandbox.faults import KINDS, FaultBook, parse_fault

REFUSED: dict[str, tuple[object, str]] = {
    "nothing": (None, "there is no fault None"),
    "an unknown action": ({"action": "explode"}, "there is no fault 'explode'; there are status, drop-before"),
    "an unknown key": ({"action": "status", "state": 1}, "takes no 'state'; it takes body, code"),
    "a key of another kind": ({"action": "stock-out", "path": "x"}, "a fault 'stock-out' takes no 'path'"),
    "a count of its own": ({"action": "status", "struck": 1}, "takes no 'struck'"),
    "an unknown service": (
        {"action": "hang", "service": "typo"},
        "there is no service 'typo'; there are any, aws, arm",
    ),
    "an unknown method": ({"action": "hang", "method": "GIT"}, "there is no method 'GIT'; there are GET"),
    "a text for a number": ({"action": "hang", "nth": "1"}, "nth is '1', which has the wrong type"),
    "a truth for a number": ({"action": "hang", "nth": True}, "nth is True"),
    "nth below one": ({"action": "hang", "nth": 0}, "nth is 0; it must be 1 or more"),
    "times below none": ({"action": "hang", "times": -1}, "times is -1"),
    "no HTTP status": ({"action": "status", "status": 600}, "status is 600; it must be 400 to 599"),
    "a status that is no failure": ({"action": "status", "status": 200}, "status is 200; it must be 400 to 599"),
    "a body without an answer": ({"action": "status", "status": 199, "body": {}}, "it must be 200 to 599"),
    "machines below none": ({"action": "quota", "afterNodes": -1}, "afterNodes is -1"),
    "no delay": ({"action": "delay"}, "needs seconds"),
    "no pattern": ({"action": "operation", "pool": "("}, "pool is not a regular expression"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_parse_when_it_cannot_mean_anything_then_refused(case: str) -> None:
    document, text = REFUSED[case]
    with pytest.raises(ValueError, match=text):
        parse_fault(document)


@pytest.mark.parametrize("kind", KINDS)
def test_wire_when_a_fault_is_read_then_what_was_given_and_how_often_it_was_met(kind: str) -> None:
    given: dict[str, object] = {"action": kind, "nth": 2, "times": 0, "service": "gke"}
    given |= {"seconds": 1.5} if kind in ("delay", "unlisted") else {"afterNodes": 1} if kind == "quota" else {}
    assert parse_fault(given).wire() == {**given, "seen": 0, "struck": 0}


def test_requests_when_nth_and_times_are_given_then_only_those_are_struck() -> None:
    book = FaultBook()
    book.add(
        parse_fault({"action": "status", "service": "arm", "method": "get", "path": "pools$", "nth": 2, "times": 2})
    )
    struck = [bool(book.for_request("arm", "GET", "/pools")) for _ in range(4)]
    assert struck == [False, True, True, False]
    others = (("gke", "GET", "/pools"), ("arm", "PUT", "/pools"), ("arm", "GET", "/pools/x"))
    assert [book.for_request(*other) for other in others] == [[], [], []]
    book.clear()
    book.add(parse_fault({"action": "hang", "times": 0}))
    assert all(book.for_request("kube", "GET", "/") for _ in range(5))


@pytest.mark.parametrize(
    "pattern", ["/node-groups$", r"/node-groups\?maxResults=1$", r"^/clusters/a/node-groups(\?|$)"]
)
def test_requests_when_the_pattern_ends_with_the_path_or_the_query_then_struck(pattern: str) -> None:
    book = FaultBook()
    book.add(parse_fault({"action": "hang", "path": pattern}))
    assert book.for_request("aws", "GET", "/clusters/a/node-groups/x?maxResults=1&all=") == []
    assert book.for_request("aws", "GET", "/clusters/a/node-groups?maxResults=1") == book.faults


@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("stock-out", ("InsufficientInstanceCapacity", "AllocationFailed", "GCE_STOCKOUT")),
        ("quota", ("VcpuLimitExceeded", "QuotaExceeded", "GCE_QUOTA_EXCEEDED")),
        ("operation", ("", "", "")),
    ],
)
def test_operations_when_of_several_clouds_then_each_has_its_own_code(kind: str, codes: tuple[str, ...]) -> None:
    book = FaultBook()
    book.add(parse_fault({"action": kind, "times": 0, "pool": "t4"}))
    struck = [book.operation(service, "train", "t4shared", "create") for service in ("aws", "arm", "gke")]
    assert tuple(fault.code for fault in struck if fault) == codes
    assert book.operation("aws", "train", "other", "create") is None
    assert (book.faults[0].seen, book.faults[0].struck) == (3, 3)
    assert book.for_request("aws", "GET", "/") == []


def test_operations_when_a_service_is_given_then_only_its_own() -> None:
    book = FaultBook()
    book.add(parse_fault({"action": "stock-out", "service": "gke"}))
    assert book.operation("aws", "train", "t4", "create") is None
    assert book.operation("gke", "train", "t4", "create") is not None
