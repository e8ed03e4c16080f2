"""GECOBench as a grid."""
