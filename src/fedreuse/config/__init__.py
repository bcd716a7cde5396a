"""Configuration of a run: one frozen object, its parts by name, changes to it, and its JSON Schema."""
