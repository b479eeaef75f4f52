"""An MCP server over a journal: models search, read and recall the user's conversations, and may fork and label them.

Only ``server.py`` and ``http.py`` need the SDK, which comes with the extra ``mcp``.
"""
