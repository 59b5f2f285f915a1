"""What the API server refuses in an object by its values; one module per idea, each rule with its source."""
