"""Values that may be secret: documents of plans hold their digests."""

from __future__ import annotations

import json

from gpukube.core.values import Request
from gpukube.engine.documents.parts import request_part

CANARY = "canary-7"


def test_request_when_it_has_metadata_or_headers_then_their_names_are_shown_and_no_value() -> None:
    registries = [{"server": "r", "hosts": [{"host": "m", "header": [{"key": "Authorization", "value": [CANARY]}]}]}]
    config = {"metadata": {"owner": CANARY}, "containerdConfig": {"registryHosts": registries}, "diskSizeGb": 100}
    shown = request_part(Request("gke", "create_node_pool", {"nodePool": {"config": config}}))
    text = json.dumps(shown["params"])
    assert CANARY not in text
    assert '"owner": "(8 bytes, sha256:' in text
    assert '"diskSizeGb": 100' in text
