"""Shipped for whoever writes a provider: the contract every provider keeps, and fakes to test against."""
