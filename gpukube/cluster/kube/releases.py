"""Helm releases, read from the cluster's Secrets without Helm.

In scope: the record and how to decode it. Out of scope: changing a release.

A revision is a Secret of type helm.sh/release.v1, named sh.helm.release.v1.<release>.v<N>, labeled owner=helm,
name=<release>, status=<status>; its `release` entry is base64 (Kubernetes) of base64 (Helm) of gzip of JSON
(helm.sh/helm pkg/storage/driver).
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from gpukube.cluster.names import CHART_LABEL, RUN_LABEL
from gpukube.core.jsontree import Tree, number, text, tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HELM_OWNER: Final = {"owner": "helm"}
SUPERSEDED: Final = "superseded"
DEPLOYED: Final = "deployed"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_MOST_BYTES: Final = 64 * 1024 * 1024
"""Maximum decompressed size of a release; a Secret contains at most 1 MiB, so a larger one is not a release."""


class SecretReader(Protocol):
    """The subset of Kube that reading releases needs."""

    def release_secrets(
        self, namespace: str = "", name: str = "", *, superseded: bool = False
    ) -> tuple[Mapping[str, object], ...]:
        """List Helm's Secrets."""


@dataclass(frozen=True, slots=True)
class Release:
    """One revision of a Helm release.

    Attributes:
        chart: Name of the chart, "nvidia-device-plugin".
        status: Helm's status: deployed, superseded, failed, uninstalling, pending-install, pending-upgrade, ...
        values: The user's values, not the chart's defaults.
        manifest: Rendered objects as YAML documents.
        deployed_at: info.last_deployed, RFC 3339.
        run: Mark of the gpukube run that wrote it (see runs); "" if none did.
        chart_mark: Recorded version and digest of a chart (CHART_LABEL), perhaps of an earlier revision; "" if none.
    """

    name: str
    namespace: str
    chart: str
    chart_version: str
    revision: int
    status: str
    values: Mapping[str, object]
    manifest: str = field(repr=False)
    deployed_at: str = ""
    run: str = ""
    chart_mark: str = ""

    @property
    def pending(self) -> bool:
        """Whether Helm started a change of the release and has not recorded its result."""
        return self.status.startswith("pending-")


def secret_name(name: str, revision: int) -> str:
    """Return the name of a revision's Secret."""
    return f"sh.helm.release.v1.{name}.v{revision}"


def decode_release(secret: Tree) -> Release | None:
    """Decode one Secret; None if it is not a release, for whatever reason."""
    record = _payload(text(secret, "data", "release"))
    if record is None or not text(record, "name"):
        return None
    metadata = tree(record, "chart", "metadata")
    return Release(
        name=text(record, "name"),
        namespace=text(record, "namespace") or text(secret, "metadata", "namespace"),
        chart=text(metadata, "name"),
        chart_version=text(metadata, "version"),
        revision=number(record, "version"),
        status=text(record, "info", "status"),
        values=tree(record, "config"),
        manifest=text(record, "manifest"),
        deployed_at=text(record, "info", "last_deployed"),
        run=text(secret, "metadata", "labels", RUN_LABEL),
        chart_mark=text(secret, "metadata", "labels", CHART_LABEL),
    )


def _payload(data: str) -> object:
    try:
        packed = base64.b64decode(base64.b64decode(data, validate=True), validate=True)
        plain = _gunzip(packed) if packed.startswith(_GZIP_MAGIC) else packed
        record: object = json.loads(plain)
    except (binascii.Error, ValueError, OSError, EOFError, zlib.error, RecursionError):
        return None
    return record


def _gunzip(packed: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    plain = unpacker.decompress(packed, _MOST_BYTES)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise gzip.BadGzipFile("truncated, or larger than any release")
    return plain


def find_releases(kube: SecretReader, namespace: str = "") -> tuple[Release, ...]:
    """Return the newest revision of every release, of one namespace or of all (""); skip records that do not decode.

    Raises:
        AccessError: Secrets may not be listed there.
        ClusterError: The API did not answer.
    """
    found: dict[tuple[str, str], Release] = {}
    for release in _decoded(kube.release_secrets(namespace)):
        key = (release.namespace, release.name)
        if key not in found or found[key].revision < release.revision:
            found[key] = release
    return tuple(found[key] for key in sorted(found))


def release_history(kube: SecretReader, name: str, namespace: str) -> tuple[Release, ...]:
    """Return all revisions of one release that Helm still keeps, oldest first."""
    found = _decoded(kube.release_secrets(namespace, name, superseded=True))
    return tuple(sorted(found, key=lambda release: release.revision))


def newest(history: Sequence[Release]) -> Release | None:
    """Return the newest revision; None if there is none."""
    return max(history, key=lambda release: release.revision, default=None)


def _decoded(secrets: Sequence[Tree]) -> list[Release]:
    return [release for secret in secrets if (release := decode_release(secret))]
