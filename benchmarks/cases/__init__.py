"""The cases, one module a theme. A module lists its cases in ``CASES``."""
