"""Running Helm, by the `helm` command or the embedded library, on a chart that was fetched."""
