"""Studies: result rows in, tables and charts out.

What the docs show comes from here, by one command each from rows that are kept. `report` is what a study
yields, `stopping`, `sweeps` and `trainings` make them, `registry` names them and says which evaluations they
need.
"""
