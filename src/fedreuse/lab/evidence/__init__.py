"""Evidence: whether runs, studies and searches are what they say, and what is published of them."""
