"""The doctor: reads live clusters, gpukube's or not, and reports known problems with evidence and fix.

In scope: reading a cluster once (gather), checks as pure functions of the evidence (one module per family, listed in
registry), the examination, its document, and the fixes. Out of scope: output, and verification of pools against the
spec (cluster.verify).
"""
