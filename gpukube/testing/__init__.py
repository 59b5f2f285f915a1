"""For authors of providers: the contract that every provider satisfies, and fakes to test against."""
