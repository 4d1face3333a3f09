"""What survey statisticians do with reports: planning, known devices, comparisons, regression, samples.

Modules here know reports by their likelihoods and scores, never by their mechanism, so they hold for all of them.
"""
