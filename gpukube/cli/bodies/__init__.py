"""Bodies of the commands: build the run, call the API, show the result, choose the exit code."""
