"""`python -m fedreuse`: the command line."""

from fedreuse.cli import main

main()
