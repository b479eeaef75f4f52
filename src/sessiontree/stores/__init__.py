"""The stores: memory, JSONL files and SQLite. ``url.py`` finds the one that an address names."""
