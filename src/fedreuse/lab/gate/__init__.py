"""Gate study: reliability of the gate score, and the cost of reuse."""
