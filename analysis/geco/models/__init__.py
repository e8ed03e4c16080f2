"""The classifiers themselves: what each paradigm trains, how good it is per class, whether it treats forms alike."""
