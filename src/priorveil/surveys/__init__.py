"""Surveys without Python: a file with questions (TOML, or an XLSForm) becomes a campaign."""
