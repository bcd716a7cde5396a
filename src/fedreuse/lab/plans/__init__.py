"""Plans: claims registered before the runs, and their statistical tests."""
