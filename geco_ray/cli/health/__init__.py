"""What ``geco-ray doctor`` looks at: this machine, and what is installed and found on it."""
