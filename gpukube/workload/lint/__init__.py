"""Rules for the manifests of GPU workloads. Must not live here: scheduling (`fit`), making manifests (`render`)."""
