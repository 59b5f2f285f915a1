"""What really goes over the wire, seen by a server that records: conditions, no credentials, no detours."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube import __version__
from gpukube.core.values import Ownership, Promise, Settings
from gpukube.endpoint import UNKNOWN_SECRET, Endpoint
from gpukube.errors import AccessError, CloudError
from gpukube_aks import AksProvider
from gpukube_aks.live.client import _sign_in
from gpukube_aks.pool.observe import observe_pool
from tests.builders import CLUSTER, SUBSCRIPTION, make_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.provider import Cloud

POOLS = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml/providers/Microsoft.ContainerService"
    "/managedClusters/train/agentPools"
)
TARGET = make_target()
DESIRED = AksProvider().desired(TARGET, Ownership("cloud", "chart", "c", {}, ""), Promise({}, TARGET.nodes))


@dataclass
class Seen:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: object


@dataclass
class Recorder:
    """A server that answers as told and records what it is asked.

    Attributes:
        answers: (status, headers, body) of the next requests; 200 and an empty list of pools when used up.
    """

    url: str = ""
    answers: list[tuple[int, dict[str, str], object]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    record = Recorder()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            record.seen.append(Seen(self.command, self.path, headers, body))
            status, extra, reply = record.answers.pop(0) if record.answers else (200, {}, {"value": []})
            content = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(content)),
                **extra,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_DELETE = do_POST = answer  # noqa: N815 - the names http.server asks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the signature of http.server
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    record.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield record
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cloud(recorder: Recorder) -> Iterator[Cloud]:
    cloud = AksProvider().connect(CLUSTER, Settings({"aks": recorder.url}))
    yield cloud
    cloud.close()


def test_create_when_sent_has_the_condition_the_body_and_our_name(cloud: Cloud, recorder: Recorder) -> None:
    recorder.answers = [(201, {"Azure-AsyncOperation": f"{recorder.url}/op", "Retry-After": "7"}, {})]
    operation = cloud.send(DESIRED.create)
    (seen,) = recorder.seen

    assert operation.handle == f"{recorder.url}/op"
    assert (seen.method, seen.path.partition("?")[0]) == ("PUT", f"{POOLS}/a100mig")
    assert seen.body == DESIRED.create.params["body"]
    assert seen.headers["if-none-match"] == "*"
    assert "if-match" not in seen.headers
    assert seen.headers["user-agent"].startswith(f"gpukube/{__version__} ")


def test_delete_when_sent_is_guarded_by_the_quoted_etag(cloud: Cloud, recorder: Recorder) -> None:
    recorder.answers = [(202, {"Azure-AsyncOperation": f"{recorder.url}/op"}, {})]
    observed = observe_pool({"name": "a100mig", "properties": {"eTag": "e1", "provisioningState": "Succeeded"}})
    cloud.send(AksProvider().requests.delete(CLUSTER, observed))

    assert recorder.seen[0].headers["if-match"] == '"e1"'


def test_request_when_sent_to_loopback_carries_no_token_of_the_environment_and_takes_no_detour(
    cloud: Cloud, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of the environment, not those of .netrc, and not through a proxy."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("AZURE_TENANT_ID", "tenant")
    monkeypatch.setenv("AZURE_CLIENT_ID", "client")
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "secret")
    (Path.home() / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")

    assert cloud.pools() == ()
    assert recorder.seen[0].headers["authorization"] == f"Bearer {UNKNOWN_SECRET}"


def test_list_when_it_has_pages_is_read_to_its_end(cloud: Cloud, recorder: Recorder) -> None:
    first, second = [{"name": "a", "properties": {}}], [{"name": "b", "properties": {}}]
    link = f"{recorder.url}{POOLS}?page=2"
    recorder.answers = [(200, {}, {"value": first, "nextLink": link}), (200, {}, {"value": second})]

    assert [pool.name for pool in cloud.pools()] == ["a", "b"]
    assert "page=2" in recorder.seen[1].path


def test_throttling_when_told_a_time_waits_for_it_and_asks_again(cloud: Cloud, recorder: Recorder) -> None:
    recorder.answers = [(429, {"Retry-After": "0.01"}, {"code": "Throttled"}), (200, {}, {"value": []})]

    assert cloud.pools() == ()
    assert len(recorder.seen) == 2


def test_redirect_when_answered_is_not_followed(cloud: Cloud, recorder: Recorder) -> None:
    recorder.answers = [(307, {"Location": f"{recorder.url}/elsewhere"}, {})]

    with pytest.raises(CloudError):
        cloud.pools()
    assert len(recorder.seen) == 1


def test_operation_when_its_address_is_on_another_port_is_not_asked(cloud: Cloud, recorder: Recorder) -> None:
    live = {"name": "a100mig", "properties": {"provisioningState": "Creating"}}
    recorder.answers = [(201, {"Azure-AsyncOperation": "http://127.0.0.1:9/op"}, {}), (200, {}, live)]
    progress = cloud.poll(cloud.send(DESIRED.create))

    assert progress.status == "Creating"
    assert [seen.method for seen in recorder.seen] == ["PUT", "GET"]


def test_answer_when_it_is_no_json_is_our_error(cloud: Cloud, recorder: Recorder) -> None:
    recorder.answers = [(200, {"Content-Type": "text/html"}, "<html>Log in to the guest network</html>")]

    with pytest.raises(CloudError) as caught:
        cloud.identify()

    assert caught.value.diagnostics[0].code == "bad-answer"


def test_real_cloud_when_nobody_is_logged_in_is_an_access_error_before_any_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "AzureCliCredential")
    cloud = AksProvider().connect(CLUSTER, Settings())

    with pytest.raises(AccessError) as caught:
        cloud.identify()
    cloud.close()

    assert "az login" in caught.value.render()


LOGGED_OUT = """
from gpukube.core.values import Settings
from gpukube.errors import AccessError
from gpukube_aks import AksProvider
from tests.builders import CLUSTER
try:
    AksProvider().connect(CLUSTER, Settings()).identify()
except AccessError as error:
    print(error.diagnostics[0].code)
"""


def test_sdk_when_it_finds_no_credentials_prints_nothing_itself() -> None:
    root = Path(__file__).parents[3]
    environment = {
        "PYTHONPATH": f"{root}:{root / 'providers'}",
        "AZURE_TOKEN_CREDENTIALS": "AzureCliCredential",
        "PATH": "",
        "HOME": str(Path.home()),
    }
    command = [sys.executable, "-c", LOGGED_OUT]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("no-credentials\n", "")


@pytest.mark.parametrize(
    ("url", "authority", "scope"),
    [
        ("", "", "https://management.azure.com/.default"),
        ("https://management.azure.com", "", "https://management.azure.com/.default"),
        ("https://arm.corp.example", "", "https://management.azure.com/.default"),
        (
            "https://management.chinacloudapi.cn",
            "login.chinacloudapi.cn",
            "https://management.chinacloudapi.cn/.default",
        ),
        (
            "https://management.usgovcloudapi.net",
            "login.microsoftonline.us",
            "https://management.core.usgovcloudapi.net/.default",
        ),
    ],
)
def test_sign_in_when_the_cloud_is_sovereign_is_its_own(url: str, authority: str, scope: str) -> None:
    assert _sign_in(Endpoint(url)) == (authority, [scope])
