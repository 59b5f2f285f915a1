"""The pure middle: resolved pools, diff, plan, ownership. Knows no SDK, no file and no clock."""
