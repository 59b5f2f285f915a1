"""User data of Amazon Linux: written, read again, and what others may have written."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.fields import MAX_PODS
from gpukube.gpu.models import model_named
from gpukube.gpu.sharing import Sharing
from gpukube_eks.userdata.merging import Ours, new_data, read_fields


def encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def max_pods_data(pods: int) -> str:
    return new_data(Ours({MAX_PODS: pods}, model_named("A100-40GB"), Sharing()), rocket=False)


def read_max_pods(encoded: str) -> object:
    return read_fields(encoded, rocket=False).get(MAX_PODS)


def mime(*configs: str) -> str:
    parts = "".join(f"--x\nContent-Type: application/node.eks.aws\n\n{config}\n" for config in configs)
    return f'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n{parts}--x--\n'


@given(st.integers(1, 256))
def test_pods_when_read_again_are_what_was_written(pods: int) -> None:
    assert read_max_pods(max_pods_data(pods)) == pods


def test_user_data_when_written_is_mime_with_a_node_configuration() -> None:
    text = base64.b64decode(max_pods_data(60)).decode()

    assert text.startswith("MIME-Version: 1.0\nContent-Type: multipart/mixed;")
    assert "Content-Type: application/node.eks.aws\n" in text
    assert "kind: NodeConfig\n" in text


@pytest.mark.parametrize(
    ("text", "pods"),
    [
        ("", None),
        ("#!/bin/sh\necho hello", None),
        (mime("spec: {kubelet: {config: {maxPods: 20}}}"), 20),
        (mime("spec: {kubelet: {config: {maxPods: 20}}}", "spec: {kubelet: {config: {maxPods: 30}}}"), 30),
        (mime("spec: {kubelet: {config: {maxPods: 20}}}", "spec: {cluster: {name: x}}"), 20),
        (mime("---\nspec: {kubelet: {config: {maxPods: 20}}}\n---\nkind: Other"), 20),
        (mime("spec: {kubelet: [}"), None),
        (mime("spec: {kubelet: {config: {maxPods: many}}}"), None),
        (mime("[" * 3000), None),
    ],
    ids=["none", "script", "one", "two", "another field", "documents", "no YAML", "no number", "deep"],
)
def test_pods_when_others_wrote_the_user_data_are_read_as_nodeadm_merges_them(text: str, pods: int | None) -> None:
    assert read_max_pods(encode(text)) == pods


@pytest.mark.parametrize("encoded", ["not base64!", "¡", "{'a': 1}"])
def test_pods_when_not_base64_are_none(encoded: str) -> None:
    assert read_max_pods(encoded) is None
