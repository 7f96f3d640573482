"""The ticket function: for each seat of a booking one ticket and its QR image, dated as the event is now."""
