"""Orders, retries, waits, and reports. Calls clouds and clusters only through their protocols."""
