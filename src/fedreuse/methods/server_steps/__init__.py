"""Server steps: how the server moves along a direction; one file each."""
