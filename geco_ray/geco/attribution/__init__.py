"""Attribution methods of GECOBench, one file each."""
