"""Helm releases read from Secrets."""

from __future__ import annotations

import base64
import gzip
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.releases import decode_release, find_releases, newest, release_history, secret_name
from tests.unit.cluster.builders import NAMESPACE, RELEASE_NAME, release_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD = {
    "name": RELEASE_NAME,
    "namespace": NAMESPACE,
    "version": 3,
    "info": {"status": "deployed", "last_deployed": "2026-11-21T12:38:18.471689036Z"},
    "chart": {"metadata": {"name": "nvidia-device-plugin", "version": "0.20.0", "appVersion": "0.20.0"}},
    "config": {"gfd": {"enabled": True}},
    "manifest": "---\nkind: DaemonSet\n",
}


class Secrets:
    """A cluster that has only Secrets."""

    def __init__(self, *secrets: Mapping[str, object]) -> None:
        self._secrets = secrets

    def release_secrets(
        self, namespace: str = "", name: str = "", *, superseded: bool = False
    ) -> tuple[Mapping[str, object], ...]:
        assert superseded is bool(name)  # the whole history of one release, or the newest of all
        return tuple(item for item in self._secrets if namespace in ("", NAMESPACE) and name in str(item))


def test_decode_when_it_is_a_release_then_every_field_is_read() -> None:
    release = decode_release(release_secret(RECORD))
    assert release is not None
    assert (release.name, release.namespace, release.revision, release.status) == (
        RELEASE_NAME,
        NAMESPACE,
        3,
        "deployed",
    )
    assert (release.chart, release.chart_version) == ("nvidia-device-plugin", "0.20.0")
    assert release.values == {"gfd": {"enabled": True}}
    assert release.manifest.startswith("---")
    assert not release.pending


def test_decode_when_it_is_not_zipped_then_it_is_read_as_helm_does() -> None:
    packed = base64.b64encode(base64.b64encode(b'{"name": "old", "version": 1}')).decode()
    release = decode_release({"data": {"release": packed}})
    assert release is not None
    assert (release.name, release.revision, release.values) == ("old", 1, {})


def _twice(data: bytes) -> str:
    return base64.b64encode(base64.b64encode(data)).decode()


GARBAGE: dict[str, dict[str, object]] = {
    "no data": {},
    "data is a list": {"data": []},
    "no base64": {"data": {"release": "%%%"}},
    "base64 of nothing": {"data": {"release": ""}},
    "base64 once": {"data": {"release": base64.b64encode(b"hello!").decode()}},
    "zip cut short": {"data": {"release": _twice(gzip.compress(b"{}" * 99)[:20])}},
    "zip of no JSON": {"data": {"release": _twice(gzip.compress(b"\xff\xfe"))}},
    "JSON of a list": {"data": {"release": _twice(gzip.compress(b"[1]"))}},
    "JSON without a name": {"data": {"release": _twice(gzip.compress(b'{"version": 2}'))}},
    "deep JSON": {"data": {"release": _twice(gzip.compress(b"[" * 100_000))}},
    "a bomb": {"data": {"release": _twice(gzip.compress(b" " * (65 * 1024 * 1024), 9))}},
}


@pytest.mark.parametrize("case", GARBAGE)
def test_decode_when_it_is_garbage_then_none(case: str) -> None:
    assert decode_release(GARBAGE[case]) is None


def test_find_releases_when_there_are_revisions_then_the_newest_of_each() -> None:
    kube = Secrets(
        release_secret({**RECORD, "version": 2}),
        release_secret({**RECORD, "version": 10}),
        release_secret({**RECORD, "version": 9}),
        release_secret({**RECORD, "name": "other", "version": 1}, name="other"),
        GARBAGE["no base64"],
    )
    assert [(item.name, item.revision) for item in find_releases(kube)] == [(RELEASE_NAME, 10), ("other", 1)]


def test_history_when_out_of_order_then_oldest_first() -> None:
    kube = Secrets(*(release_secret({**RECORD, "version": n}) for n in (10, 2, 9)))
    history = release_history(kube, RELEASE_NAME, NAMESPACE)
    assert [item.revision for item in history] == [2, 9, 10]
    assert newest(history) is history[-1]
    assert newest(()) is None


@pytest.mark.parametrize("status", ["pending-install", "pending-upgrade", "pending-rollback"])
def test_pending_when_helm_was_cut_off_then_true(status: str) -> None:
    release = decode_release(release_secret({**RECORD, "info": {"status": status}}))
    assert release is not None
    assert release.pending


def test_secret_name_when_asked_then_as_helm_writes_it() -> None:
    assert secret_name("x", 2) == "sh.helm.release.v1.x.v2"
