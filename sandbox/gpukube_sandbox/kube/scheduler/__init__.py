"""The scheduler's judgement: which nodes a pod fits, and what it says where none does. Pure."""
