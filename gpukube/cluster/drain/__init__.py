"""How nodes are emptied: which pods leave, what keeps them, what belongs together; cordoning."""
