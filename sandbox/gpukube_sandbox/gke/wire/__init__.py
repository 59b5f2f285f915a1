"""What goes over the wire: names, calls, answers, tokens. Nothing here knows the service."""
