"""The doctor: looks at live clusters, ours or not, and names the known faults with evidence and remedy.

Lives here: reading a cluster once (gather), the checks as pure functions of what was read (one module per family,
listed in registry), the examination, its document, and the mends. Must not live here: output, and what verify does
(promise against nodes: cluster.verify).
"""
