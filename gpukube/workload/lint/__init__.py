"""Rules for the manifests of GPU workloads. Out of scope: scheduling (`fit`), making manifests (`render`)."""
