"""Emulates Google Kubernetes Engine: the ClusterManager of google.container.v1, over gRPC and REST.

In scope: the service, its rules, and its wire formats. Out of scope: gpukube itself, which the sandbox never imports.
The modules import google-cloud-container for its messages, so they are loaded at the first use of GKE (`door`).
"""
