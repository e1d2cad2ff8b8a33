"""The protocol's wire shapes: how requests are read and answers are written, and nothing else."""
