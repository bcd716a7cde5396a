"""Laboratory: what produces and checks published evidence; nothing below imports it."""
