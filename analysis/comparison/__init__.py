"""Which differences between names a page may state: paired over seeds, resampled over sentences or requests."""
