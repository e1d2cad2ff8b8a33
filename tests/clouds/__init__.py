"""Real stores on loopback, started by the tests themselves. README.md says how to use each."""
