"""Orders, retries, waits and reports. Talks to clouds and clusters only through their protocols."""
