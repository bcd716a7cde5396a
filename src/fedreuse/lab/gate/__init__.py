"""Gate study: reliability of the gate's score, and how well it predicts harm by reuse."""
