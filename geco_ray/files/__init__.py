"""Files in general: folders of data, downloads with checksums, YAML with its lines, whole-file writing."""
