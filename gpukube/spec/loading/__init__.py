"""From texts to validated specs, and the messages when they are not."""
