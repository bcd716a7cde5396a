"""Links, one file each: the transfer of one group in one direction, with state at sender and receiver."""
