"""Tolerances for floating-point errors, from which all tolerances of the designs are made."""

ROUNDOFF = 2.0**-52  # the distance from one to the next float
SLACK = 64 * ROUNDOFF  # room for rounding in every bound, relative to the numbers that were added up
ROUNDING = 1e-12  # the relative error of thousands of operations; smaller differences mean nothing
# How exactly linear programmes are solved; smaller differences between solutions mean nothing.
TOLERANCE = 1e-9
