"""Documents in the formats that programs and CI systems read. Pure functions."""
