"""Where real credentials may go: not over plain http, not to loopback, not out of the sandbox."""

from __future__ import annotations

import pytest

from gpukube.core.values import Settings
from gpukube.endpoint import Endpoint, choose_endpoint, is_loopback
from gpukube.errors import AccessError
from gpukube_aks.facts.endpoint import is_same_origin

PRIVATE = "https://arm.corp.example"


@pytest.mark.parametrize(
    ("url", "sandbox", "expected"),
    [
        ("", False, Endpoint("")),
        (PRIVATE, False, Endpoint(PRIVATE)),
        (f"{PRIVATE}/", False, Endpoint(PRIVATE)),
        ("http://127.0.0.1:8080", False, Endpoint("http://127.0.0.1:8080", is_emulated=True)),
        ("http://127.0.0.1:8080", True, Endpoint("http://127.0.0.1:8080", is_emulated=True)),
        ("https://localhost:8443", False, Endpoint("https://localhost:8443", is_emulated=True)),
        ("http://[::1]:80", True, Endpoint("http://[::1]:80", is_emulated=True)),
    ],
)
def test_endpoint_when_allowed_is_emulated_on_loopback_only(url: str, sandbox: bool, expected: Endpoint) -> None:  # noqa: FBT001 - a table of cases
    endpoints = {"aks": url} if url else {}

    assert choose_endpoint("aks", Settings(endpoints, sandbox=sandbox), "train-aks") == expected


@pytest.mark.parametrize(
    ("url", "sandbox", "code"),
    [
        ("", True, "sandbox-endpoint"),
        (PRIVATE, True, "sandbox-endpoint"),
        ("http://127.0.0.1.evil.example", True, "sandbox-endpoint"),
        ("http://arm.corp.example", False, "plain-http"),
        ("ftp://arm.corp.example", False, "plain-http"),
        ("arm.corp.example", False, "plain-http"),
    ],
)
def test_endpoint_when_not_allowed_is_refused(url: str, sandbox: bool, code: str) -> None:  # noqa: FBT001 - a table of cases
    endpoints = {"aks": url} if url else {}

    with pytest.raises(AccessError) as caught:
        choose_endpoint("aks", Settings(endpoints, sandbox=sandbox), "train-aks")

    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    "url", ["https://10.0.0.1", "https://localhost.example", "", "x", "https://127.0.0.1@evil.example"]
)
def test_host_when_elsewhere_is_not_loopback(url: str) -> None:
    assert not is_loopback(url)


@pytest.mark.parametrize(
    ("url", "same"),
    [
        (f"{PRIVATE}/x?y=z", True),
        (f"{PRIVATE}:443/x", True),
        ("http://arm.corp.example/x", False),
        ("https://other.example/x", False),
        (f"{PRIVATE}:8443/x", False),
        (f"{PRIVATE}@evil.example/x", False),
        ("", False),
    ],
)
def test_origin_when_compared_takes_scheme_host_and_port(url: str, same: bool) -> None:  # noqa: FBT001 - a table of cases
    assert is_same_origin(url, PRIVATE) is same
