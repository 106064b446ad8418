"""Every bound of reading and chunking, in one place, each with its reason."""

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Largest upload: a text of ten million tokens is some 45 MB."""

MAX_HTML_CHARACTERS = 16 * 1024 * 1024
"""Largest HTML page; real ones stay below 5 MB."""

MAX_HTML_TAGS = 600_000
"""Most tags of a page, end tags included: parsing and converting 100,000 of them takes some eight seconds and 250 MB."""

MAX_DOCUMENT_TOKENS = 20_000_000
"""Most tokens of one document: twice what the app promises to handle."""

MAX_HTML_DEPTH = 100
"""Levels of HTML elements kept; deeper ones become flat text. The converter is recursive, and real pages stay below 60."""

MAX_LIST_DEPTH = 6
"""Levels of HTML lists and quotes kept: each indents every line below it, so depth multiplies size."""

MAX_ORDERED_ITEMS = 1_000
"""Items up to which an HTML list keeps its numbers: numbering one costs the converter the square of its items."""

MAX_CELL_CHARACTERS = 2_000
"""A table without header cells that has a longer cell than this is layout."""

MAX_COLUMNS = 200
"""Cells to which the header row of a table is filled up."""

MAX_JSON_LD_BLOCKS = 100
"""JSON-LD blocks kept of one page."""

MAX_JSON_LD_CHARACTERS = 1_000_000
"""Largest JSON-LD block read."""

MAX_JSON_LD_DEPTH = 50
"""Deepest JSON-LD value kept, so that whoever walks it may recurse."""

MAX_TITLE_CHARACTERS = 200
"""Titles and headings are cut here; the text keeps them whole."""

MAX_UNIT_CHARACTERS = 20_000
"""Longest text handed to the tokenizer at once; a longer sentence is cut at a blank first."""

BATCH_UNITS = 5_000
"""Sentences per call of the tokenizer: large enough for its threads, small enough to report progress and to cancel."""
