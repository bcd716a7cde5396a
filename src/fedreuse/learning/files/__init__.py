"""Reading users' own data: files and folders of several formats become arrays of examples."""
