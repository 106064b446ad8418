"""Studies: result rows in, tables and charts out.

What the docs show comes from here, by one command each from rows that are kept. `registry` names them and
says which evaluations they need; `frontier_rows` makes the rows of one.
"""
