"""The pure core: resolved pools, diff, plan, ownership. Uses no SDK, file, or clock."""
