"""Run directories: writing, reading, checksums, provenance; needs neither torch nor data."""
