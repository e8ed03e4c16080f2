"""GECO's tasks as files: where they come from, how they are checked and read, and their cards."""
