"""Stores: the protocol, what each write means (``rules``), and the memory, SQLite, JSONL and PostgreSQL stores."""
