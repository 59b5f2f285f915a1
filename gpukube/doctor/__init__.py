"""The doctor: reads live clusters, ours or not, and reports known problems with evidence and fix.

In scope: reading a cluster once (gather), the checks as pure functions of what was read (one module per family,
listed in registry), the examination, its document, and the fixes. Out of scope: output, and what verify does
(promise against nodes: cluster.verify).
"""
