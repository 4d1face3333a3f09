"""Studies: the only code that holds the truth and the reports at once."""
