"""An emulated Google Kubernetes Engine: the ClusterManager of google.container.v1, over gRPC and over REST.

In scope: the service, its rules and its wire formats. Out of scope: anything of gpukube outside its sandbox.
The modules import google-cloud-container for its messages, so they are loaded when GKE is first asked for (`door`).
"""
