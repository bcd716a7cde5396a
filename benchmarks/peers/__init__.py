"""Other simulators on the same work; what runs in their environments imports nothing of ours but its neighbours."""
