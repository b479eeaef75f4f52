"""How records look to people: short texts for numbers, times, ids and tool calls, and a path cut into turns.

The terminal and the HTML page share it. Everything here is pure: the clock and the width are passed in.
"""
