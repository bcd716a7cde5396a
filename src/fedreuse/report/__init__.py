"""Tables, figures and the report page, built from run directories alone, without torch or data."""
