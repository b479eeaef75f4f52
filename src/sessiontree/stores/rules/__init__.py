"""What each write means, as pure functions. Empty, so that threads may load its modules in any order at once."""
