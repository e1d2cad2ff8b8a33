"""The Delta log: which files make up a version, what they say, and which data files are live."""
