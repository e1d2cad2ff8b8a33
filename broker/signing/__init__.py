"""Pre-signed URLs: one module per cloud."""
