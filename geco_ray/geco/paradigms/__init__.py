"""Training paradigms of GECOBench, one file each."""
