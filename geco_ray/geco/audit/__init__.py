"""What is in a task and what is wrong with it: counts, defects, bias, correlations, and their tables."""
