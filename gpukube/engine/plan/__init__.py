"""From specs to plans: desired pools, owners, and the cost of changes."""
