"""Kubeconfigs: one context out of many, with the files that it names."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube.core.values import ClusterRef
from gpukube.errors import AccessError
from gpukube.kubeconfig import KubeconfigError, file_access, parse_kubeconfig, read_kubeconfig

if TYPE_CHECKING:
    from pathlib import Path

MANY = """
apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: c1, user: u1}}
- {name: two, context: {cluster: c2, user: u2, namespace: ml}}
- {name: lost, context: {cluster: none, user: u1}}
clusters:
- {name: c1, cluster: {server: "https://one.example", certificate-authority: ca.pem}}
- {name: c2, cluster: {server: "https://two.example", certificate-authority-data: QQ==}}
users:
- {name: u1, user: {client-certificate: cert.pem, client-key: key.pem, tokenFile: token}}
- {name: u2, user: {exec: {apiVersion: v1, command: ./bin/login}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name in ("ca.pem", "cert.pem", "key.pem", "token"):
        (tmp_path / name).write_text(f"{name}\n")
    path = tmp_path / "config"
    path.write_text(MANY)
    return path


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_context_when_current_is_complete_in_itself(file: Path) -> None:
    entry = read_kubeconfig(str(file), "")

    assert entry.document() == {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "one",
                "cluster": {"server": "https://one.example", "certificate-authority-data": encoded("ca.pem\n")},
            }
        ],
        "users": [
            {
                "name": "one",
                "user": {
                    "client-certificate-data": encoded("cert.pem\n"),
                    "client-key-data": encoded("key.pem\n"),
                    "token": "token",
                },
            }
        ],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "current-context": "one",
    }
    assert entry.has_own_credentials


def test_context_when_named_is_taken_alone(file: Path) -> None:
    entry = read_kubeconfig(str(file), "two")
    text = yaml.safe_dump(entry.document())

    assert entry.namespace == "ml"
    assert entry.server == "https://two.example"
    assert "one.example" not in text
    assert not entry.has_own_credentials
    assert entry.user["exec"] == {"apiVersion": "v1", "command": str(file.parent / "bin" / "login")}


def test_user_when_replaced_by_a_token_has_nothing_else(file: Path) -> None:
    entry = read_kubeconfig(str(file), "two").with_token("t")

    assert entry.user == {"token": "t"}
    assert entry.has_own_credentials
    assert "'t'" not in repr(entry)


def test_data_when_given_beside_a_file_counts_as_kubectl_counts_it(file: Path) -> None:
    file.write_text(
        MANY.replace("certificate-authority: ca.pem", "certificate-authority: x, certificate-authority-data: QQ==")
    )

    assert read_kubeconfig(str(file), "one").cluster["certificate-authority-data"] == "QQ=="


@pytest.mark.parametrize(
    ("text", "context", "words"),
    [
        ("", "", 'no context ""'),
        ("{", "", "not YAML"),
        ("[1]", "x", 'no context "x"'),
        (MANY, "three", "lost, one, two"),
        (MANY, "lost", "has no cluster with a server"),
    ],
)
def test_kubeconfig_when_it_cannot_be_used_says_why(text: str, context: str, words: str) -> None:
    with pytest.raises(KubeconfigError) as caught:
        parse_kubeconfig(text, context)

    assert words in f"{caught.value} {caught.value.fix}"


def test_file_when_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="nothing cannot be read: No such file"):
        read_kubeconfig(str(tmp_path / "nothing"), "")


def test_file_that_it_names_when_missing_is_named(file: Path) -> None:
    (file.parent / "key.pem").unlink()

    with pytest.raises(KubeconfigError, match=r"key\.pem cannot be read"):
        read_kubeconfig(str(file), "one")


@pytest.mark.parametrize(
    ("server", "context", "refused"),
    [
        ("http://one.example", "one", True),
        ("http://127.0.0.1:8001", "one", True),
        ("http://127.0.0.1:8001", "nobody", False),  # kubectl proxy logs in by itself
        ("https://127.0.0.1:6443", "one", False),  # a tunnel, with the cluster's CA
        ("https://one.example", "one", False),
    ],
)
def test_credentials_when_they_would_go_over_plain_http_then_refused(
    file: Path, server: str, context: str, *, refused: bool
) -> None:
    text = MANY.replace("https://one.example", server)
    file.write_text(text.replace("- {name: lost,", "- {name: nobody, context: {cluster: c1}}\n- {name: lost,"))
    cluster = ClusterRef("train", "eks", "train", {}, kubeconfig=str(file), context=context)
    if not refused:
        assert server in file_access(cluster, sandbox=False).kubeconfig
        return
    with pytest.raises(AccessError) as caught:
        file_access(cluster, sandbox=False)
    assert caught.value.diagnostics[0].code == "plain-http"
