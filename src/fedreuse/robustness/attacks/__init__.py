"""Attacks: what bad members of a federation do, the same in every executor; one file each."""
