"""Studies: result rows in, tables and charts out.

Every table of the docs is made here from rows that are kept, by one command each. `registry` has the studies
by name, with the evaluations that make their rows; `tables` has what they share. `frontier_rows` makes the
rows of one.
"""
