"""Reading client-go's protobuf bodies."""

from __future__ import annotations

import base64

import pytest

from gpukube_sandbox.kube.http.protobuf import decode
from gpukube_sandbox.kube.store.problems import ApiProblem


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(kind: bytes, raw: bytes, version: bytes = b"v1") -> bytes:
    return b"k8s\x00" + field(1, field(1, version) + field(2, kind)) + field(2, raw)


def test_decode_when_secret_of_helm_then_labels_data_and_type() -> None:
    meta = field(1, b"sh.helm.release.v1.x.v1") + field(3, b"gpu") + field(11, field(1, b"owner") + field(2, b"helm"))
    raw = (
        field(1, meta + field(2, b""))
        + field(2, field(1, b"release") + field(2, b"\x00data"))
        + field(3, b"helm.sh/release.v1")
    )

    found = decode(envelope(b"Secret", raw))

    assert found == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "sh.helm.release.v1.x.v1", "namespace": "gpu", "labels": {"owner": "helm"}},
        "data": {"release": base64.b64encode(b"\x00data").decode()},
        "type": "helm.sh/release.v1",
    }


def test_decode_when_delete_options_then_policy_and_grace() -> None:
    found = decode(envelope(b"DeleteOptions", field(1, 0) + field(4, b"Background") + field(5, b"All")))

    assert (found["gracePeriodSeconds"], found["propagationPolicy"], found["dryRun"]) == (0, "Background", ["All"])


def test_decode_when_ingress_then_what_is_inlined_is_a_field_of_the_rule() -> None:
    backend = field(4, field(1, b"web") + field(2, field(2, 80)))
    path = field(1, b"/") + field(2, backend) + field(3, b"Prefix")
    rule = field(1, b"a.example.com") + field(2, field(1, field(1, path)))
    found = decode(envelope(b"Ingress", field(2, field(3, rule)), b"networking.k8s.io/v1"))
    paths = [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]
    assert found["spec"] == {"rules": [{"host": "a.example.com", "http": {"paths": paths}}]}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b"{}", 400, id="no-envelope"),
        pytest.param(envelope(b"PersistentVolume", b""), 415, id="unknown-type"),
        pytest.param(envelope(b"Secret", b"\x0a\xff"), 400, id="cut-off"),
        pytest.param(envelope(b"Secret", b"\x0b"), 400, id="wire-type"),
    ],
)
def test_decode_when_body_is_broken_then_refused(body: bytes, code: int) -> None:
    with pytest.raises(ApiProblem) as problem:
        decode(body)
    assert problem.value.code == code
