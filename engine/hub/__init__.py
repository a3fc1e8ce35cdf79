"""The model hub: what is there, what was fetched from it, and fetching it."""
