"""Delta Sharing, the recipient's side."""
