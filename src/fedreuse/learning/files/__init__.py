"""Data as people have it: from files and folders of several forms to arrays of examples."""
