"""What a page says of the run itself: what was run, how it went, and with what."""
