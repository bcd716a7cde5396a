"""Tables and figures, rebuilt from run directories alone: neither torch nor data is needed."""
