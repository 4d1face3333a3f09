"""Reading: what a curator does with reports. Tallies, estimates and their statistics."""
