"""Every bound of reading and chunking, each with its reason."""

from core.base.errors import BadDocument

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Largest upload: a text of ten million tokens is some 45 MB."""

MAX_HTML_CHARACTERS = 16 * 1024 * 1024
"""Largest HTML page; real ones stay below 5 MB."""

MAX_HTML_TAGS = 400_000
"""Most tags of a page, end tags included: 100,000 take some eight seconds and 250 MB."""

MAX_OWN_TAGS = 10_000
"""Tags of pages that an opening reads without a child: a second of work; a child takes as long to start."""

MAX_OWN_CHARACTERS = 600_000
"""Characters of those pages; the largest of 27 real ones has 336,000, and 5,500 tags."""

MAX_DOCUMENT_TOKENS = 20_000_000
"""Most tokens of one document: twice what the app promises to handle."""

MAX_HTML_DEPTH = 100
"""Levels of HTML elements kept, deeper ones become flat text; real pages stay below 60."""

MAX_LIST_DEPTH = 6
"""Levels of HTML lists and quotes kept: each indents every line below it, so depth multiplies size."""

MAX_ORDERED_ITEMS = 1_000
"""Most numbered items of an HTML list: numbering one costs the square of its items."""

MAX_CELL_CHARACTERS = 2_000
"""A table without header cells that has a longer cell than this is layout."""

MAX_COLUMNS = 200
"""Columns that cells with spans are spread over, and to which a header row is filled up."""

MAX_SPANNED_CELLS = 50_000
"""Cells that the spans of a page's tables may add: a thousand rows of fifty columns."""

MAX_REPEATED_CHARACTERS = 100
"""A longer cell stands once, however many rows and columns it spans."""

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
"""Sentences per call of the tokenizer: enough for its threads, few enough to report and to cancel."""

MAX_LINE_CHARACTERS = 1_000_000
"""A longer line is no prose as people write it: it is read as text, and a notice says so."""

MAX_BLOCKS = 300_000
"""Most headings, tables and lists of a text; the densest 64 MB have 230,000, of 5 µs and 500 bytes each."""

MAX_ARCHIVE_ENTRIES = 2_000
"""Most files of an archive with those of archives inside it; an office file or e-book is one, too."""

MAX_UNPACKED_BYTES = 256 * 1024 * 1024
"""Most that one file may unpack to, everything inside it together: four of the largest uploads."""

MAX_ARCHIVE_RATIO = 200
"""Most that an archive may grow by unpacking: texts 3 to 10 times, repeated log lines up to 150."""

FREE_UNPACKED_BYTES = 16 * 1024 * 1024
"""Below this the ratio does not count: small and repetitive files harm nobody."""

MAX_ARCHIVE_DEPTH = 2
"""Levels of archives: an archive may hold archives, which hold documents."""

MAX_XML_DEPTH = 200
"""Deepest XML of an office file: its readers are recursive, and real ones stay below 60."""

MAX_XML_ELEMENTS = 500_000
"""Most XML elements of an office file, some 150,000 paragraphs: as many as memory holds."""

MAX_CONVERTED_CHARACTERS = MAX_FILE_BYTES
"""Longest Markdown that a conversion may give."""

BASE_CONVERSION_SECONDS = 60
"""Computing time for any file: 100 pages of a PDF of ruled tables take 30 to 50, in 140 kB."""

CONVERSION_SECONDS_PER_MEGABYTE = 300
"""More for a larger file: a PDF of 500 pages has one megabyte and takes 50 to 100, tables thrice that."""

MAX_CONVERSION_SECONDS = 300
"""Most computing time of one conversion: enough for some fifteen hundred dense pages of a PDF."""

MAX_PDF_FORMS = 100_000
"""Most form XObjects of a PDF: a scatter plot may have one a point, and forms in forms double."""

MAX_PDF_GLYPHS = 200_000
"""Most letters read of one page of a PDF; the densest posters have 50,000."""

MAX_PDF_RULES = 20_000
"""Most lines of a drawing, drawn lines of a page, and annotations on it; more are no table."""

MAX_PICTURE_PIXELS = 60_000_000
"""Most pixels of a picture file: a page of A3 at 400 dots an inch has 31 million."""

MAX_OCR_PIXELS = 2_500_000
"""Pixels to which a page or picture is scaled down for text recognition."""

OCR_SHARE = 0.7
"""Of the computing time of a conversion, for text recognition; pages left then are named."""

MAX_READING_SECONDS = 1_200
"""Clock time of reading all files of one opening."""

MAX_CONVERSION_BYTES = 1024 * 1024 * 1024
"""Memory of a conversion beyond what its libraries take; 100,000 paragraphs of an office file take 0.6 of it.
"""


def seconds_for(n_bytes: int) -> int:
    """Computing time that a conversion may take."""
    return min(
        MAX_CONVERSION_SECONDS,
        BASE_CONVERSION_SECONDS + CONVERSION_SECONDS_PER_MEGABYTE * n_bytes // 1_000_000,
    )


class BeyondBounds(BadDocument):
    """A bound of a whole archive or of a whole opening is passed: nothing of it is opened. Other refusals
    cost one file.
    """


def check_bound(
    subject: str, n: int, most: int, unit: str, remedy: str = "split it and open the parts"
) -> None:
    """`subject`: as "a.txt has". Raises BadDocument beyond the bound."""
    if n > most:
        raise BadDocument(f"{subject} {n:,} {unit}, more than {most:,}; {remedy}")
