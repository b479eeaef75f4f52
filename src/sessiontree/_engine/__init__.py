"""What stands between the stores and the operating system: group commit, locks, syncing."""
