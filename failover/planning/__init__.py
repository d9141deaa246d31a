"""Pure: decides from one look at both clusters what would be committed, and why not where not.

Imports nothing by itself: whoever reads a plan file needs none of what decides.
"""
