"""The paper's tables, beside runs of its protocol."""
