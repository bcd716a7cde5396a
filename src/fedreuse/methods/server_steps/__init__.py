"""Server steps (server optimizers): rules for moving the model along a direction, one file each."""
