"""What a cluster is like now, read once and judged: who advertises devices, who reaches which node, what drifted."""
