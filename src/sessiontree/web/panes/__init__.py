"""What several pages show: each module reads one thing and draws it."""
