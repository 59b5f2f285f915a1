"""From specs to plans: what is desired, who owns what, what a change costs."""
