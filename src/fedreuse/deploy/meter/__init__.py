"""Lines between nodes and server that count bytes, and can be narrow, slow and lossy."""
