"""Gates: who of the selected clients must be fresh."""
