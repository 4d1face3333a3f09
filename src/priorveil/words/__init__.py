"""Words: sentences, tables, HTML and plots of what the packages below hold as numbers and codes.

Every text is in the catalogue (`catalogue/en.json`, read by `say`).
"""
