"""The systems, one module a package. A module lists its systems in ``SYSTEMS``."""
