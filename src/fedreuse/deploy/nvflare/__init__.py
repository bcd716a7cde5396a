"""fedreuse in an NVFlare job: one filter for the server, one for clients; executor and aggregator stay unchanged."""
