"""Measure sessiontree beside raw storage and beside what a user would pick instead. See docs/benchmarks/how-it-works.md."""
