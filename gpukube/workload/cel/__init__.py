"""CEL expressions in selectors of devices: parsed, and evaluated as far as the values of a device are known."""
