"""Running Helm on a downloaded chart, with the `helm` command or the embedded library."""
