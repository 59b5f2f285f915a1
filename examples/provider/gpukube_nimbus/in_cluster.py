"""Parts of Nimbus in its clusters: a label with the pool's name, and a device plugin in the node image."""

from __future__ import annotations

from typing import Final

from gpukube.core.in_cluster import InClusterFacts, NodePlugin

POOL_LABEL: Final = "nimbus.example/pool"

IN_CLUSTER: Final = InClusterFacts(
    pool_label=POOL_LABEL,
    label_domains=("nimbus.example/",),
    node_plugins=(
        NodePlugin(
            kind="nimbus-plugin",
            title="the plugin in Nimbus's node image",
            os_image="NimbusOS",
            keep="let Nimbus advertise: write devicePlugin.owner: cloud",
            remove="create the pool on another cloud: Nimbus has no image without the plugin",
        ),
    ),
)
