"""Interactive report page: sections with figures and tables, in one HTML file that needs no network."""
