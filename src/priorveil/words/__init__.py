"""Words: sentences, tables, HTML and plots of what the packages below hold as numbers and codes.

Every text is in the catalogue (`texts/en.json`, read by `catalogue.say`).
"""
