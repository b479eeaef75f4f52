"""How things look: pure drawing, and the few pieces of Rich that are used."""
