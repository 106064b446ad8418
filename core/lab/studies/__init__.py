"""Studies: result rows in, tables and charts out; `registry` names them."""
