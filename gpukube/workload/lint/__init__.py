"""Rules for manifests of GPU workloads. Out of scope: scheduling (`fit`), creating manifests (`render`)."""
