"""The verbs, a small family in each module."""
