"""Where requests may go: real credentials to no open port, none at all out of the sandbox."""

from __future__ import annotations

import pytest

from gpukube.core.values import Settings
from gpukube.errors import AccessError
from gpukube_gke.facts.endpoint import Endpoint, choose_endpoint

REST, RPC = "http://127.0.0.1:8080", "127.0.0.1:8081"


@pytest.mark.parametrize(
    ("endpoints", "sandbox", "expected"),
    [
        ({}, False, Endpoint()),
        ({"gke": "https://gke.corp/"}, False, Endpoint("https://gke.corp")),
        ({"gke": REST}, True, Endpoint(REST, is_emulated=True)),
        ({"gke": REST}, False, Endpoint(REST, is_emulated=True)),
        ({"gke": "http://[::1]:8080"}, True, Endpoint("http://[::1]:8080", is_emulated=True)),
        ({"gke": "http://localhost:8080/"}, True, Endpoint("http://localhost:8080", is_emulated=True)),
        ({"gke-grpc": RPC}, True, Endpoint("", RPC, is_emulated=True)),
        ({"gke": REST, "gke-grpc": RPC}, True, Endpoint(REST, RPC, is_emulated=True)),
        ({"aks": REST}, False, Endpoint()),
    ],
)
def test_endpoint_when_allowed_is_chosen(endpoints: dict[str, str], sandbox: bool, expected: Endpoint) -> None:  # noqa: FBT001 - a case
    assert choose_endpoint(Settings(endpoints, sandbox=sandbox), "train-gke") == expected


@pytest.mark.parametrize(
    ("endpoints", "sandbox", "code"),
    [
        ({}, True, "sandbox-endpoint"),
        ({"gke": "https://container.googleapis.com"}, True, "sandbox-endpoint"),
        ({"gke": "http://10.0.0.1:80"}, True, "sandbox-endpoint"),
        ({"gke-grpc": "10.0.0.1:80"}, True, "sandbox-endpoint"),
        ({"gke": REST, "gke-grpc": "10.0.0.1:80"}, True, "sandbox-endpoint"),
        ({"gke": "https://container.googleapis.com", "gke-grpc": RPC}, True, "sandbox-endpoint"),
        ({"gke": "http://gke.corp"}, False, "plain-http"),
        ({"gke-grpc": "gke.corp:443"}, False, "plain-http"),
        ({"gke": "https://gke.corp", "gke-grpc": RPC}, False, "plain-http"),
        ({"gke": "http://127.0.0.1.example.com"}, False, "plain-http"),
        ({"gke": "http://127.0.0.1@evil.example"}, False, "plain-http"),
    ],
)
def test_endpoint_when_a_token_would_leak_is_refused(endpoints: dict[str, str], sandbox: bool, code: str) -> None:  # noqa: FBT001 - a case
    with pytest.raises(AccessError) as caught:
        choose_endpoint(Settings(endpoints, sandbox=sandbox), "train-gke")

    assert caught.value.diagnostics[0].code == code
