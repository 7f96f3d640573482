"""The organiser's pages: events, their sales, posters and bookings."""
