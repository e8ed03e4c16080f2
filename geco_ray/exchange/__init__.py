"""What a tool of another environment needs of a benchmark, as plain files: requests and networks, sentences, models."""
