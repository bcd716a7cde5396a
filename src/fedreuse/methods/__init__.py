"""Methods: one file each, with a server half and a client half that communicate only by messages."""
