"""To and from other programs, other stores and HTML."""
