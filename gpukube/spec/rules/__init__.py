"""Rules across fields for every cloud."""
