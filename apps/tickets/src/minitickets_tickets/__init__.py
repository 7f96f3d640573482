"""The ticket function: for each seat of a confirmed booking one ticket and its QR image."""
