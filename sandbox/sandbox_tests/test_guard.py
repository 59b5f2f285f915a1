"""Nothing leaves the machine: the audit hook, seen in a process of its own, and the environment of children."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpukube_sandbox.guard import DEAD_PROXY, OutsideSandbox, child_environment, is_loopback

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        (b"localhost", True),
        (None, True),
        ("", True),
        ("10.0.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),  # noqa: S104 - as an address to connect to
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("management.azure.com", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_is_loopback_when_given_a_host_then_decides_without_resolving(host: object, *, loopback: bool) -> None:
    assert is_loopback(host) is loopback


AWS_CALLS = {
    "eks": "list_clusters",
    "ec2": "describe_subnets",
    "sts": "get_caller_identity",
    "iam": "list_roles",
}

ATTEMPTS = {
    "connect": "import socket; socket.socket().connect(('192.0.2.1', 80))",
    "connect-ipv6": "import socket; socket.socket(socket.AF_INET6).connect(('2001:db8::1', 80))",
    "sendto": "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
    "look-up": "import socket; socket.getaddrinfo('management.azure.com', 443)",
    "old-look-up": "import socket; socket.gethostbyname('management.azure.com')",
    "create-connection": "import socket; socket.create_connection(('management.azure.com', 443))",
    "urllib": "import urllib.request; urllib.request.urlopen('http://192.0.2.1/')",
    "httpx": "import httpx; httpx.get('https://management.azure.com/', trust_env=False)",
    "asyncio": "import asyncio; asyncio.run(asyncio.open_connection('192.0.2.1', 80))",
    "azure-sdk": (
        "from azure.core.pipeline.policies import SansIOHTTPPolicy; "
        "from azure.mgmt.containerservice import ContainerServiceClient; "
        "c = ContainerServiceClient(object(), 's', authentication_policy=SansIOHTTPPolicy(), retry_total=0); "
        "list(c.managed_clusters.list())"
    ),
    "azure-identity": (
        "from azure.identity import ManagedIdentityCredential; "
        "ManagedIdentityCredential(retry_total=0).get_token('https://management.azure.com/.default')"
    ),
    **{
        f"boto3 {service}": (
            "import boto3; from botocore.config import Config; "
            f"c = boto3.client('{service}', 'us-east-1', aws_access_key_id='x', aws_secret_access_key='x', "
            f"config=Config(retries={{'total_max_attempts': 1}})); c.{operation}()"
        )
        for service, operation in AWS_CALLS.items()
    },
    "boto3 credentials": (
        "import logging; logging.basicConfig(level='DEBUG'); "  # it goes on to the next source, and tells the log
        "from botocore.utils import InstanceMetadataFetcher; "
        "raise SystemExit(InstanceMetadataFetcher(num_attempts=1).retrieve_iam_role_credentials() or 1)"
    ),
    "google-rest": (
        "from google.auth.credentials import AnonymousCredentials as A; "
        "from google.cloud.container_v1 import ClusterManagerClient; "
        "c = ClusterManagerClient(credentials=A(), transport='rest'); "
        "c.list_clusters(parent='projects/p/locations/-', retry=None)"
    ),
    "google-auth": (
        "import google.auth.transport.requests as t; t.Request()('https://oauth2.googleapis.com/token', method='POST')"
    ),
}


ONE_BY_ONE = """
import json, sys, traceback
guard.refuse_non_loopback()
guard.refuse_non_loopback()
for name, attempt in json.loads(sys.argv[1]).items():
    print(f"\\n{name}:", file=sys.stderr)
    try:
        exec(attempt)
        print("left", name)
    except BaseException:
        traceback.print_exc()
"""


@pytest.fixture(scope="module")
def attempts() -> tuple[str, dict[str, str]]:
    """Make every attempt, each in turn: those that were not stopped, and what was said of each."""
    done = run(ONE_BY_ONE, json.dumps(ATTEMPTS))
    parts = re.split(rf"^({'|'.join(ATTEMPTS)}):$", done.stderr, flags=re.MULTILINE)
    return done.stdout, dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("case", ATTEMPTS)
def test_guard_when_something_leaves_the_machine_then_refused_by_name(
    case: str, attempts: tuple[str, dict[str, str]]
) -> None:
    left, said = attempts
    assert case not in left
    assert "the sandbox talks to loopback only; refused: " in said[case]


def test_guard_when_on_loopback_then_let_through() -> None:
    code = (
        "guard.refuse_non_loopback(); import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(('localhost', s.getsockname()[1])); print('through')"
    )
    assert run(code).stdout == "through\n"


def test_guard_when_loaded_then_only_the_standard_library() -> None:
    done = run(
        "import sys; print(sorted(m for m in sys.modules if m.split('.')[0] in {'uvicorn', 'starlette', 'httpx'}))"
    )
    assert done.stdout == "[]\n"


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run lines of Python that have `guard`, in a process of its own: audit hooks stay for good."""
    command = [sys.executable, "-c", f"from gpukube_sandbox import guard\n{code}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)


HELM = {
    "repository": "helm_python.Config(kubeconfig_content='{}').install('x', 'y', chart_repo_url='http://192.0.2.1/')",
    "cluster": (
        'helm_python.Config(kubeconfig_content=\'{"apiVersion":"v1","kind":"Config","current-context":"a",\''
        '\'"clusters":[{"name":"a","cluster":{"server":"https://192.0.2.1"}}],\''
        '\'"contexts":[{"name":"a","context":{"cluster":"a"}}]}\').list()'
    ),
}


@pytest.mark.parametrize("case", HELM)
def test_child_environment_when_helm_leaves_the_machine_then_it_ends_at_the_dead_proxy(case: str) -> None:
    pytest.importorskip("helm_python")
    command = [sys.executable, "-c", f"import helm_python; {HELM[case]}"]
    environment = child_environment(os.environ)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=120)
    assert done.returncode != 0
    assert "127.0.0.1:9" in done.stderr


def test_outside_sandbox_when_raised_then_an_os_error_with_the_address() -> None:
    error = OutsideSandbox("192.0.2.1")
    assert isinstance(error, OSError)
    assert error.address == "192.0.2.1"


def test_child_environment_when_made_then_no_credentials_and_dead_proxies() -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/home/x",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AZURE_CLIENT_SECRET": "s",
        "ARM_CLIENT_SECRET": "s",
        "GOOGLE_APPLICATION_CREDENTIALS": "/x",
        "CLOUDSDK_AUTH_ACCESS_TOKEN": "s",
        "IDENTITY_HEADER": "s",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "s",
        "https_proxy": "http://proxy.example:3128",
        "no_proxy": "*",
    }
    made = child_environment(given)
    assert (made["PATH"], made["HOME"]) == ("/bin", "/home/x")
    assert "s" not in made.values()
    assert not [name for name in made if name.startswith(("AWS", "AZURE", "ARM", "GOOGLE", "CLOUDSDK"))]
    assert {made[name] for name in ("HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY")} == {DEAD_PROXY}
    assert made["no_proxy"] == made["NO_PROXY"] == "127.0.0.1,localhost,::1"
    assert given["no_proxy"] == "*"
