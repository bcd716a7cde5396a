"""The interactive report: sections with figures and tables, written as one page that needs no network."""
