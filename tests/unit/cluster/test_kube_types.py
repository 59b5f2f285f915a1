"""Threads that decode the API's answers at once do not end the process."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lightkube.core.resource import Resource

from gpukube.cluster.kube import client as kube
from gpukube.cluster.kube.lightkube_types import DECODED

ALL_AT_ONCE = """
import json, sys, threading
from lightkube.core.decoders import decode_list
from gpukube.cluster.kube.lightkube_types import DECODED, prepare_types

sys.setswitchinterval(1e-6)
if "prepare" in sys.argv:
    prepare_types()
pod = {"containers": [{"name": "c", "env": [{"name": "e", "value": "v"}]}], "tolerations": [{"key": "k"}]}
selector, template = {"matchLabels": {"a": "b"}}, {"metadata": {"labels": {"a": "b"}}, "spec": pod}
item = {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {**pod, "selector": selector, "template": template}}
answer = json.dumps({"items": [item], "metadata": {}}).encode()
start = threading.Barrier(len(DECODED))

def decode(resource):
    start.wait()
    decode_list(answer, resource)

threads = [threading.Thread(target=decode, args=(resource,)) for resource in DECODED]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


DESCRIBED_AT_ONCE = """
import sys, threading
from lightkube.core.decoders import decode_list
from gpukube.cluster.kube.api_types import ApiType
from gpukube.cluster.kube.calls import global_kind

sys.setswitchinterval(1e-6)
THREADS, KINDS = 8, 150
start = threading.Barrier(THREADS)
answer = b'{"items": [{"metadata": {"name": "n"}}], "metadata": {}}'

def decode():
    for at in range(KINDS):
        start.wait()
        decode_list(answer, global_kind(ApiType("example.com", "v1", f"k{at}", f"k{at}", namespaced=False)))

threads = [threading.Thread(target=decode) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


CONNECTED_AT_ONCE = """
import os, sys, threading
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.kube.lightkube_types import prepare_types
from gpukube.core.values import KubeAccess

THREADS, PROCESSES, TIMES = 8, int(sys.argv[1]), int(sys.argv[2])
config = KubeAccess('''
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: c, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: c}}]
''')

def race():
    sys.setswitchinterval(1e-6)
    start = threading.Barrier(THREADS)

    def connect():
        start.wait()
        for _ in range(TIMES):
            connect_kube(config, 1.0).close()

    threads = [threading.Thread(target=connect) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

prepare_types()
codes = []
for _ in range(PROCESSES):
    child = os.fork()
    if child == 0:
        race()
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(codes)
"""


def connect_at_once(processes: int, times: int) -> str:
    """Connect so often from each of eight threads of each of so many fresh processes; gives how they ended."""
    command = [sys.executable, "-c", CONNECTED_AT_ONCE, str(processes), str(times)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_threads_when_they_connect_at_once_then_the_process_lives() -> None:
    # A type is worked out at its first use, so that each process is one chance.
    assert connect_at_once(6, 1) == str([0] * 6)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_threads_when_they_connect_ten_thousand_times_then_the_process_lives() -> None:
    assert connect_at_once(1, 1250) == "[0]"


def test_threads_when_a_type_is_described_at_run_time_then_the_process_lives() -> None:
    ended = subprocess.run([sys.executable, "-c", DESCRIBED_AT_ONCE], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_threads_when_types_are_prepared_then_the_process_lives() -> None:
    ended = subprocess.run([sys.executable, "-c", ALL_AT_ONCE, "prepare"], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_prepared_types_when_compared_with_those_of_the_client_then_none_is_missing() -> None:
    generic = "lightkube.generic_resource"
    used = {
        item
        for item in vars(kube).values()
        if isinstance(item, type) and issubclass(item, Resource) and item.__module__ != generic
    }
    assert used == set(DECODED)
