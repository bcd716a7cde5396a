"""Measurements beside other projects; they need a checkout and are no part of the installed package."""
