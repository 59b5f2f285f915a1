"""Rules across fields that hold on every cloud."""
