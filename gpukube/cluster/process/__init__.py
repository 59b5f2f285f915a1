"""Child processes that end with this one, and the directories they work in."""
