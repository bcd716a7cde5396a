"""Configuration of a run: the frozen dataclass, named parts, overrides, and the JSON Schema."""
