"""Results: from the tallies of forms to what the reports say about every question."""
