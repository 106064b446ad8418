"""What people read on the pages of a PDF, in their order: columns, tables, forms, notes, heads."""

from __future__ import annotations

import io
import re
import textwrap
import time

import pypdfium2 as pdfium
import pytest

from core.base.errors import BadDocument
from core.ingest import pdf, read_document
from core.ingest.pdf import read_pdf
from core.ingest.pdf_layout import Piece, Region, pieces_of
from core.ingest.pdf_page import Word
from tests.core.ingest.made import Sheet, pdf_of

PEARS = (
    "The orchard keeps forty rows of pears along the southern wall, and each autumn the pickers climb before"
    " the sun has warmed the stones, because cold fruit travels better than ripe fruit does."
)
CIDER = (
    "Cider is pressed in the long barn by two families who have shared the mill since the flood, and they"
    " hang the second jug in the well until Christmas morning."
)
WASPS = (
    "Wasps are kept away with lanterns of green glass, and in wet years the boys of the village are paid a"
    " penny a nest, which they spend on sugar."
)


def text_of(*sheets: Sheet) -> str:
    return read_pdf(pdf_of(*sheets), "a.pdf").markdown


def column(sheet: Sheet, x: float, y: float, text: str, width: int = 40, leading: float = 13) -> Sheet:
    return sheet.lines(x, y, textwrap.wrap(text, width), 10, leading, "times")


def three_columns(sheet: Sheet) -> Sheet:
    for x, text in ((50, PEARS), (220, CIDER), (390, WASPS)):
        column(sheet, x, 750, text, 30)
    return sheet


PRICES = "| Kind | Barrels | Price |\n|---|---|---|\n| Perry | 14 | 3.20 |\n| Apple wine | 31 | 2.10 |"
STOCK = [
    {65: "Kind", 185: "Barrels", 275: "Price"},
    {65: "Perry", 185: "14", 275: "3.20"},
    {65: "Apple wine", 185: "31", 275: "2.10"},
]


def stock(sheet: Sheet, y: float) -> Sheet:
    for i, row in enumerate(STOCK):
        sheet.row(y - 16 * i, row)
    return sheet


PAGES = {
    "a large first letter beside two lines": (
        Sheet()
        .text(60, 746, "T", 26)
        .lines(
            79,
            760,
            ["he harbour master keeps a record of", "vessels that enter the basin and of the"],
            10,
            14,
        )
        .lines(60, 732, ["goods that are landed there by day and by night."], 10, 14),
        "The harbour master keeps a record of vessels that enter the basin and of the goods that are landed there by"
        " day and by night.",
    ),
    "headings with numbers": (
        column(
            column(Sheet().text(60, 790, "1.1 Scope of the rules", 14), 60, 760, PEARS, 80).text(
                60, 700, "A. Fees", 14
            ),
            60,
            670,
            CIDER,
            80,
        ),
        f"# 1.1 Scope of the rules\n\n{PEARS}\n\n# A. Fees\n\n{CIDER}",
    ),
    "a raised letter as browsers make it": (
        Sheet()
        .text(60, 750, "The basin holds 10")
        .text(142, 754, "6", 8.33)
        .text(150, 750, "litres of pears."),
        "The basin holds 10^6 litres of pears.",
    ),
    "sums without a name in the first column": (
        Sheet()
        .row(760, {60: "Item", 200: "What", 320: "Price"})
        .row(744, {60: "1", 200: "Pears", 320: "473.00"})
        .row(728, {200: "Subtotal", 320: "473.00"})
        .row(712, {200: "Total", 320: "591.25"}),
        "| Item | What | Price |\n|---|---|---|\n| 1 | Pears | 473.00 |\n|  | Subtotal | 473.00 |\n|  | Total | 591.25 |",
    ),
    "three columns under a headline": (
        three_columns(Sheet().text(150, 790, "News of the orchard", 18)),
        f"# News of the orchard\n\n{PEARS}\n\n{CIDER}\n\n{WASPS}",
    ),
    "columns whose lines are not level": (
        column(column(Sheet(), 60, 760, PEARS), 310, 753, CIDER, 38, 12),
        f"{PEARS}\n\n{CIDER}",
    ),
    "two bands of columns with a heading between": (
        column(
            column(
                column(column(Sheet(), 60, 780, PEARS), 320, 780, CIDER).text(
                    250, 690, "The second half", 14
                ),
                60,
                660,
                WASPS,
            ),
            320,
            660,
            PEARS,
        ),
        f"{PEARS}\n\n{CIDER}\n\n# The second half\n\n{WASPS}\n\n{PEARS}",
    ),
    "a table in one of two columns": (
        column(
            stock(column(Sheet(), 60, 760, PEARS, 44), 670), 360, 760, f"{CIDER} {WASPS} {PEARS} {CIDER}", 36
        ),
        f"{PEARS}\n\n{PRICES}\n\n{CIDER} {WASPS} {PEARS} {CIDER}",
    ),
    "a boxed sidebar": (
        column(
            column(Sheet(), 60, 760, f"{PEARS} {CIDER} {WASPS}", 58).box(400, 640, 150, 80),
            410,
            700,
            WASPS,
            24,
            11,
        ),
        f"{PEARS} {CIDER} {WASPS}\n\n{WASPS}",
    ),
    "a caption inside of a sentence": (
        Sheet()
        .lines(
            60,
            760,
            ["Every spring the weir is opened and the whole valley", "comes to watch how the brown water"],
        )
        .text(60, 710, "Figure 4: The weir from the mill.", 8)
        .lines(60, 680, ["carries the branches of the winter down to the lake,", "where they are sold."]),
        "Every spring the weir is opened and the whole valley comes to watch how the brown water carries the"
        " branches of the winter down to the lake, where they are sold.\n\nFigure 4: The weir from the mill.",
    ),
    "a table without rules": (
        stock(Sheet().text(60, 760, "Stock of the barn on the first of May."), 730),
        f"Stock of the barn on the first of May.\n\n{PRICES}",
    ),
    "a table with rules": (stock(Sheet().grid([60, 180, 270, 360], [712, 696, 680, 664]), 700), PRICES),
    "cells over two rows and over two columns": (
        Sheet()
        .grid([60, 180], [700, 680, 640])
        .grid([180, 270, 360], [700, 680, 660, 640])
        .box(60, 620, 210, 20)
        .box(270, 620, 90, 20)
        .row(686, {65: "Route", 185: "Day", 275: "Fare"})
        .row(666, {65: "North", 185: "Monday", 275: "14"})
        .row(646, {185: "Friday", 275: "17"})
        .row(626, {65: "South, daily", 275: "11"}),
        "| Route | Day | Fare |\n|---|---|---|\n| North | Monday | 14 |\n| North | Friday | 17 |\n"
        "| South, daily | South, daily | 11 |",
    ),
    "cells of several lines": (
        Sheet()
        .row(730, {60: "Tool", 180: "Use", 450: "Price"}, font="bold")
        .row(710, {60: "Ladder", 180: "For the upper branches, which are cut in the", 450: "40"})
        .row(698, {180: "second week of March."})
        .row(678, {60: "Hook", 180: "Pulls branches down to the picker so that no", 450: "12"})
        .row(666, {180: "fruit falls."}),
        "| Tool | Use | Price |\n|---|---|---|\n"
        "| Ladder | For the upper branches, which are cut in the second week of March. | 40 |\n"
        "| Hook | Pulls branches down to the picker so that no fruit falls. | 12 |",
    ),
    "a table whose names stand in the middle of their columns": (
        Sheet()
        .row(760, {110: "Port", 230: "Adult", 290: "Child"}, font="bold")
        .row(744, {60: "Lund", 236: "14", 300: "7"})
        .row(728, {60: "Ystad harbour, outer basin", 236: "15", 300: "8"}),
        "| Port | Adult | Child |\n|---|---|---|\n| Lund | 14 | 7 |\n| Ystad harbour, outer basin | 15 | 8 |",
    ),
    "names over two columns each": (
        Sheet()
        .row(760, {200: "In the summer", 330: "In winter"}, font="bold")
        .row(744, {60: "Port", 190: "Adult", 250: "Child", 330: "Adult"})
        .row(728, {60: "Lund", 190: "14", 250: "7", 330: "4"}),
        "|  | In the summer | In the summer | In winter |\n|---|---|---|---|\n"
        "| Port | Adult | Child | Adult |\n| Lund | 14 | 7 | 4 |",
    ),
    "a name midway between two lines of names": (
        Sheet()
        .row(760, {150: "Men", 250: "Women"}, font="bold")
        .text(60, 754, "Year", font="bold")
        .row(748, {150: "(N, %)", 250: "(N, %)"}, font="bold")
        .row(730, {60: "2001", 150: "101 (21%)", 250: "51 (1%)"})
        .row(714, {60: "2002", 150: "102 (22%)", 250: "52 (2%)"}),
        "| Year | Men (N, %) | Women (N, %) |\n|---|---|---|\n| 2001 | 101 (21%) | 51 (1%) |\n"
        "| 2002 | 102 (22%) | 52 (2%) |",
    ),
    "code": (
        column(
            column(Sheet(), 60, 760, PEARS, 80)
            .lines(60, 700, ["def pick(row):"], font="courier")
            .lines(84, 688, ["if row:  # not yet"], font="courier")
            .lines(108, 676, ["return 'pears'"], font="courier")
            .lines(60, 652, ["# done"], font="courier"),
            60,
            620,
            CIDER,
            80,
        ),
        f"{PEARS}\n\n```\ndef pick(row):\n    if row:  # not yet\n        return 'pears'\n\n# done\n```\n\n{CIDER}",
    ),
    "more code than sentences": (
        Sheet()
        .text(60, 760, PEARS[:86], 12, "times")
        .lines(
            60,
            730,
            ["def pick(row: Row) -> Pear:", "    return max(row.pears, key=ripeness)"],
            10,
            12,
            "courier",
        )
        .text(60, 690, CIDER[:86], 12, "times")
        .lines(
            60, 660, ["class Mill(Machine):", "    handles = (left_handle, right_handle)"], 10, 12, "courier"
        )
        .lines(
            60,
            636,
            ["    def press(self, pear: Pear):", "        self.turn(speed=2, by=pear)"],
            10,
            12,
            "courier",
        ),
        f"{PEARS[:86].strip()}\n\n```\ndef pick(row: Row) -> Pear:\n    return max(row.pears, key=ripeness)\n```\n\n"
        f"{CIDER[:86].strip()}\n\n```\nclass Mill(Machine):\n    handles = (left_handle, right_handle)\n"
        "    def press(self, pear: Pear):\n        self.turn(speed=2, by=pear)\n```",
    ),
    "code in one of two columns": (
        column(
            column(Sheet(), 60, 760, f"{PEARS} {CIDER}", 50).lines(
                274, 754.5, ["if a:", "    b = 2", "c = 3"], 8, 11, "courier"
            ),
            274,
            700,
            WASPS,
            44,
        ),
        f"{PEARS} {CIDER}\n\n```\nif a:\n    b = 2\nc = 3\n```\n\n{WASPS}",
    ),
    "code inside of a sentence": (
        Sheet()
        .lines(60, 760, [f"{PEARS[:60]}", "and the cider that is pressed there are sold by"], 10, 13, "times")
        .lines(60, 720, ["sell(pears)", "sell(cider)"], 10, 12, "courier")
        .text(60, 685, "and by nobody else.", 10, "times"),
        f"{PEARS[:60].strip()} and the cider that is pressed there are sold by\n\n"
        "```\nsell(pears)\nsell(cider)\n```\n\nand by nobody else.",
    ),
    "an address in a fixed pitch in a sentence": (
        Sheet()
        .lines(60, 760, ["The mill and the barn of the orchard are described at"], 10, 13, "times")
        .lines(60, 747, ["https://example.org/orchard/", "barn-and-mill"], 10, 13, "courier")
        .lines(60, 721, ["where the prices are too, as they were on the first of May."], 10, 13, "times"),
        "The mill and the barn of the orchard are described at https://example.org/orchard/ barn-and-mill where"
        " the prices are too, as they were on the first of May.",
    ),
    "a typed letter": (
        Sheet()
        .text(60, 790, "The mill", 10, "times")
        .lines(60, 760, ["Anna Berg", "12 Mill Lane"], 10, 12, "courier")
        .lines(60, 716, textwrap.wrap(PEARS, 60), 10, 12, "courier"),
        f"The mill\n\nAnna Berg\n12 Mill Lane\n\n{PEARS}",
    ),
    "a letter in a fixed pitch that is quoted": (
        column(column(Sheet(), 60, 760, f"{PEARS} {CIDER}", 80), 60, 660, WASPS, 60).lines(
            60, 600, textwrap.wrap(PEARS, 60), 10, 12, "courier"
        ),
        f"{PEARS} {CIDER}\n\n{WASPS}\n\n{PEARS}",
    ),
    "values in a fixed pitch beside their names": (
        column(Sheet(), 60, 760, PEARS, 80)
        .lines(60, 700, ["Name", "Trade"], 10, 14)
        .lines(160, 700, ["Maria Holm", "bell founder"], 10, 14, "courier"),
        f"{PEARS}\n\n|  |  |\n|---|---|\n| Name | Maria Holm |\n| Trade | bell founder |",
    ),
    "a table in a fixed pitch": (
        column(Sheet(), 60, 790, PEARS, 80)
        .row(730, STOCK[0], font="courier")
        .row(718, STOCK[1], font="courier")
        .row(706, STOCK[2], font="courier"),
        f"{PEARS}\n\n{PRICES}",
    ),
    "names and values": (
        Sheet()
        .lines(60, 760, ["Name:", "Born:", "Trade:"], 10, 22)
        .lines(160, 760, ["Maria Holm", "4 June 1981", "bell founder"], 10, 22),
        "|  |  |\n|---|---|\n| Name: | Maria Holm |\n| Born: | 4 June 1981 |\n| Trade: | bell founder |",
    ),
    "broken words": (
        Sheet()
        .lines(
            60,
            760,
            [
                "The council is respon-",
                "sible for a state-of-the-",
                "art mill, a well-",
                "known inn, the Anglo-",
            ],
            10,
            14,
        )
        .lines(60, 704, ["Saxon door and a com-"], 10, 14)
        .lines(300, 760, ["mittee for pages 12-", "14 of the book."], 10, 14),
        "The council is responsible for a state-of-the-art mill, a well-known inn, the Anglo-Saxon door and a"
        " committee for pages 12-14 of the book.",
    ),
    "a sentence of two lines around a figure's title": (
        Sheet()
        .lines(
            60,
            760,
            [
                "The tower was raised in three summers by masons who",
                "had been promised beer as well as silver, and",
            ],
        )
        .text(60, 600, "Figure 3: The tower.", 8)
        .text(60, 560, "who went home in the fourth year."),
        "The tower was raised in three summers by masons who had been promised beer as well as silver, and who"
        " went home in the fourth year.\n\nFigure 3: The tower.",
    ),
    "names of fields above their values": (
        Sheet()
        .row(760, {60: "Surname", 300: "Given name"}, 8)
        .row(746, {60: "Holm", 300: "Maja Lena"}, 11)
        .row(716, {60: "Born", 300: "Passport"}, 8)
        .row(702, {60: "May 1981", 300: "X 44 120"}, 11),
        "|  |  |\n|---|---|\n| Surname: Holm | Given name: Maja Lena |\n| Born: May 1981 | Passport: X 44 120 |",
    ),
    "hyphens by what the document writes elsewhere": (
        Sheet().lines(
            60,
            760,
            [
                "The north-south road, a long rope and a term of office; a foot-",
                "note and a long-",
                "term plan for the north-",
                "south wall of the railway, the rail-",
                "way and the water-",
                "ways of the rail and the lake, which is as long as it is deep.",
            ],
        ),
        "The north-south road, a long rope and a term of office; a footnote and a long-term plan for the"
        " north-south wall of the railway, the railway and the waterways of the rail and the lake, which is as"
        " long as it is deep.",
    ),
    "ligatures": (
        Sheet().text(60, 700, "The of\x02ce \x02led the \x03at \x02les.", 10, "times"),
        "The office filed the flat files.",
    ),
    "a power": (
        Sheet().text(60, 760, "A basin of 10").text(117, 764, "6", 6).text(123, 760, "litres."),
        "A basin of 10^6 litres.",
    ),
    "text up and down the margins": (
        column(Sheet(), 60, 760, PEARS, 80)
        .text(30, 700, "Printed in Visby", 8, angle=270)
        .text(570, 200, "Sheet 4", 8, angle=90),
        f"{PEARS}\n\nSheet 4\n\nPrinted in Visby",
    ),
    "text upside down": (
        Sheet()
        .text(500, 114, "Words about the lamp that", angle=180)
        .text(500, 128 - 28, "hangs upside down.", angle=180),
        "hangs upside down.\nWords about the lamp that",
    ),
    "a page on its side": (
        Sheet(rotate=90)
        .text(100, 100, "The first line of the wide page", angle=90)
        .text(114, 100, "goes on here.", angle=90),
        "The first line of the wide page goes on here.",
    ),
    "lists": (
        Sheet()
        .row(740, {60: "\x95", 75: "a knife with a handle as long as"})
        .text(75, 726, "your hand is wide")
        .row(712, {60: "\x95", 75: "a sack"}),
        "- a knife with a handle as long as your hand is wide\n- a sack",
    ),
    "lists whose signs are drawn": (
        Sheet()
        .box(60, 742, 4, 4)
        .lines(75, 740, ["a knife with a handle as long as", "your hand is wide"])
        .box(60, 714, 4, 4)
        .text(75, 712, "a sack"),
        "- a knife with a handle as long as your hand is wide\n- a sack",
    ),
    "names in the margin and texts set in below them": (
        Sheet()
        .row(790, {60: "A. Berg", 300: "May 2024"})
        .text(60, 760, "Barn", 12, "bold")
        .lines(130, 744, ["Two families keep it, and it has a mill of grey stone.", "It leaks."])
        .text(60, 712, "Well", 12, "bold")
        .text(130, 696, "Dug in 1921.")
        .text(60, 678, "Weir", 12, "bold")
        .text(130, 662, "Opened each spring."),
        "A. Berg\n\nMay 2024\n\n# Barn\n\nTwo families keep it, and it has a mill of grey stone.\nIt leaks.\n\n# Well\n\nDug in 1921.\n\n"
        "# Weir\n\nOpened each spring.",
    ),
    "terms with a text set in below each, close together": (
        Sheet()
        .lines(60, 760, ["Barn", "Well", "Weir", "Mill"], leading=24)
        .lines(130, 748, ["Kept by two.", "Dug in 1921.", "Opened late.", "Turns slowly."], leading=24),
        "Barn\n\nKept by two.\n\nWell\n\nDug in 1921.\n\nWeir\n\nOpened late.\n\nMill\n\nTurns slowly.",
    ),
    "columns of which the left one begins lower, under a picture": (
        column(column(Sheet(), 60, 690, PEARS).text(60, 610, "The barn"), 320, 760, f"{WASPS} {CIDER}"),
        f"{PEARS}\n\nThe barn\n\n{WASPS} {CIDER}",
    ),
    "names midway over two columns each": (
        Sheet()
        .row(760, {214: "In June", 375: "In July"})
        .row(744, {60: "Stop", 190: "From", 260: "To", 350: "From", 420: "To"})
        .row(728, {60: "Lund", 190: "8:10", 260: "8:15", 350: "9:10", 420: "9:15"}),
        "|  | In June | In June | In July | In July |\n|---|---|---|---|---|\n| Stop | From | To | From | To |\n"
        "| Lund | 8:10 | 8:15 | 9:10 | 9:15 |",
    ),
    "lists side by side, one longer": (
        Sheet()
        .row(760, {60: "Open", 300: "Closed"}, font="bold")
        .lines(60, 744, ["Barn", "Mill", "Weir", "Well"])
        .lines(300, 744, ["Shed", "Inn"])
        .text(60, 680, "Words below."),
        "| Open | Closed |\n|---|---|\n| Barn | Shed |\n| Mill | Inn |\n| Weir |  |\n| Well |  |\n\nWords below.",
    ),
    "cells beside the middle of cells with two and three lines": (
        Sheet()
        .row(760, {60: "Day", 130: "What", 300: "Fee"})
        .row(740, {60: "1 May", 130: "Opening", 300: "14.10"})
        .lines(130, 718, ["CARD PURCHASE", "HARBOUR CAFE", "LUND"], leading=12)
        .row(706, {60: "3 May", 300: "12.50"})
        .lines(130, 674, ["STANDING ORDER", "RENT OF BERTH"])
        .row(667, {60: "9 May", 300: "3.40"}),
        "| Day | What | Fee |\n|---|---|---|\n| 1 May | Opening | 14.10 |\n"
        "| 3 May | CARD PURCHASE HARBOUR CAFE LUND | 12.50 |\n| 9 May | STANDING ORDER RENT OF BERTH | 3.40 |",
    ),
    "a name beside the middle of its value": (
        Sheet()
        .row(760, {60: "Type:", 160: "Boat"})
        .row(742, {60: "Length:", 160: "9.40 m"})
        .lines(160, 724, ["Volvo, serviced in May", "by Lund Marine"])
        .text(60, 717, "Engine:"),
        "|  |  |\n|---|---|\n| Type: | Boat |\n| Length: | 9.40 m |\n| Engine: | Volvo, serviced in May by Lund Marine |",
    ),
    "figures as far from each other as words of a justified line": (
        Sheet()
        .row(760, {60: "SEK million", 250: "Note", 285: "2023", 325: "2022"})
        .row(745, {60: "Net sales", 264: "2", 280: "1,204.5", 325: "1,100.0"})
        .row(730, {60: "Cost", 264: "3", 280: "(804.1)", 325: "(760.2)"})
        .row(715, {60: "Profit", 264: "4", 280: "400.4", 325: "339.8"}),
        "| SEK million | Note | 2023 | 2022 |\n|---|---|---|---|\n| Net sales | 2 | 1,204.5 | 1,100.0 |\n"
        "| Cost | 3 | (804.1) | (760.2) |\n| Profit | 4 | 400.4 | 339.8 |",
    ),
    "names of columns below a title that nearly fills the gap between them": (
        Sheet()
        .text(70, 760, "Table 1: Depths in metres and silt")
        .row(740, {70: "Site", 130: "Depth (m)", 193: "Silt (%)"})
        .row(724, {70: "Lund", 130: "4.2", 193: "31"})
        .row(708, {70: "Ystad", 130: "3.9", 193: "28"}),
        "Table 1: Depths in metres and silt\n\n| Site | Depth (m) | Silt (%) |\n|---|---|---|\n"
        "| Lund | 4.2 | 31 |\n| Ystad | 3.9 | 28 |",
    ),
    "a narrow column with wide gaps in its lines": (
        Sheet()
        .row(760, {60: "The", 117: "keeper", 192: "of"}, font="courier")
        .text(60, 748, "harbour lamps writes all", font="courier")
        .row(736, {60: "ships", 180: "down"}, font="courier")
        .text(60, 724, "in his book.", font="courier"),
        "The keeper of harbour lamps writes all ships down in his book.",
    ),
    "a hyphen that stands for a word": (
        Sheet().lines(60, 760, ["Die Verwaltung der See-", "und Hafenlotsen ist neu."]),
        "Die Verwaltung der See- und Hafenlotsen ist neu.",
    ),
    "dashes within an item": (
        Sheet().text(60, 760, "1. In this Act \x96 and in it alone \x96 boats are vessels."),
        "1. In this Act – and in it alone – boats are vessels.",
    ),
    "a blank behind the number of a note": (
        Sheet().text(60, 763.4, "1", 6.67).text(68, 760, "The sites are listed.", 8),
        "^1 The sites are listed.",
    ),
    "a coloured column along the page": (
        Sheet([b".9 g 0 0 170 842 re f 0 g"])
        .lines(20, 760, ["Languages", "Swedish", "Skills", "Surveying"], leading=20)
        .lines(200, 760, ["Anna Berg", "Engineer", "Experience", "Harbour of Lund"], leading=20),
        "Languages\n\nSwedish\n\nSkills\n\nSurveying\n\nAnna Berg\n\nEngineer\n\nExperience\n\nHarbour of Lund",
    ),
    "large signs of lists that are drawn": (
        Sheet()
        .box(60, 743, 8, 8)
        .text(84, 740, "Ships grow", 24)
        .box(60, 713, 8, 8)
        .text(84, 710, "Silt", 24),
        "- Ships grow\n- Silt",
    ),
    "contents": (
        Sheet().lines(60, 730, ["1 Pears . . . . . . . . . . . . 3", "2 Cider ................ 14"]),
        "1 Pears ... 3\n\n2 Cider ... 14",
    ),
}


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_is_read_as_people_do(kind: str) -> None:
    sheet, expected = PAGES[kind]
    assert text_of(sheet) == expected.replace("\x95", "")


def test_fonts_whose_name_alone_says_that_their_pitch_is_fixed_show_code() -> None:
    file = pdf_of(column(Sheet(), 60, 760, PEARS, 80).lines(60, 700, ["pick()", "eat()"], font="courier"))
    for name, is_fixed in ((b"/SFTT100", True), (b"/XMenlo1", True), (b"/Georgia", False)):
        assert (
            "```\npick()\neat()\n```" in read_pdf(file.replace(b"/Courier", name), "a.pdf").markdown
        ) is is_fixed


def test_a_name_of_the_code_with_a_sign_of_the_sentence_is_no_line_of_code() -> None:
    sheet = column(Sheet(), 60, 760, PEARS, 80)
    for y, name, sign in ((700, "INTEGER", ";"), (687, "BOOLEAN", ".")):
        sheet.operators.append(
            f"BT /courier 10 Tf 60 {y} Td ({name}) Tj /times 10 Tf ({sign}) Tj ET".encode()
        )
    assert text_of(sheet) == f"{PEARS}\n\nINTEGER;\nBOOLEAN."


@pytest.mark.parametrize("word", ["السفينة", "הספינה"])
def test_letters_of_words_that_run_leftwards_stand_in_the_order_of_reading(word: str) -> None:
    sheet = Sheet()
    for i, letter in enumerate(reversed(word)):
        said = f"/Span <</ActualText <FEFF{ord(letter):04X}>>> BDC".encode()
        sheet.operators.append(said + f" BT /helvetica 10 Tf {60 + 6 * i} 760 Td (a) Tj ET EMC".encode())
    assert text_of(sheet) == word


def leftwards(sheet: Sheet, y: float, visual: str) -> Sheet:
    """A line that ends at the right margin, as it stands from left to right; letters come one by one."""
    for part in re.finditer(r"[^\W\d_a-z]|[!-~–]+", visual):
        x = 500 - 6 * (len(visual) - part.start())
        said = f"/Span <</ActualText <FEFF{ord(part[0][0]):04X}>>> BDC".encode()
        if part[0] < "\u0500":
            sheet.text(x, y, part[0].replace("–", "\x96"), font="courier")
        else:
            sheet.operators.append(said + f" BT /courier 10 Tf {x} {y} Td (a) Tj ET EMC".encode())
    return sheet


@pytest.mark.parametrize(
    ("visual", "read"),
    [
        (".)340 הלע( 1902 תנשב", "בשנת 1902 (עלה 340)."),
        (".17:00–9:00 חותפ", "פתוח 9:00–17:00."),
        ("םויה info@port.example לאש", "שאל info@port.example היום"),
        ("456-070 مقر", "رقم 070-456"),
        ("25-ב חותפ", "פתוח ב-25"),
    ],
)
def test_a_line_that_runs_leftwards_keeps_its_numbers_signs_and_latin(visual: str, read: str) -> None:
    assert text_of(leftwards(Sheet(), 760, visual)) == read


def test_columns_of_a_table_that_runs_leftwards_stand_in_the_order_of_reading() -> None:
    sheet = Sheet()
    for y, visual in ((760, "םוי          למנ"), (744, "ןושאר        דול"), (728, "ישילש        וכע")):
        leftwards(sheet, y, visual)
    assert text_of(sheet).splitlines()[-1] == "| עכו | שלישי |"


def test_fields_and_comments_are_text() -> None:
    sheet = (
        Sheet()
        .text(60, 720, "Full name")
        .field("Tx", "name", "(Ada Lind)", 200, 716)
        .text(60, 690, "Newsletter")
        .field("Btn", "news", "/Yes", 200, 686, "/AS /Yes", 14)
        .text(60, 660, "Gym")
        .field("Btn", "gym", "/Off", 200, 656, "/AS /Off", 14)
        .text(60, 630, "Size")
        .field("Ch", "size", "(Large)", 200, 626, "/Ff 131072 /Opt [(Small)(Large)]")
        .field("Tx", "pin", "(1234)", 200, 596, "/Ff 8192")
        .field("Tx", "hidden", "(unseen)", 200, 566, "/F 2")
        .comment("Check the spelling", "Bo", "Highlight")
    )
    rows = "| Full name | Ada Lind |\n| Newsletter | [x] Yes |\n| Gym | [ ] |\n| Size | Large |"
    assert text_of(sheet) == f"|  |  |\n|---|---|\n{rows}\n\nComment by Bo: Check the spelling"


def test_running_heads_are_left_out_of_sentences_and_told() -> None:
    texts = [
        f"{PEARS} The warden of the",
        f"outer wall {WASPS[:-1]} and then the",
        "river rose over the stones of the mill.",
    ]
    sheets = [
        column(Sheet(), 60, 740, text, 80)
        .text(60 if i % 2 else 400, 805, "The Orchard Book" if i % 2 else f"Chapter {i + 1}", 8)
        .text(290, 30, f"- {i + 7} -", 8)
        for i, text in enumerate(texts)
    ]
    converted = read_pdf(pdf_of(*sheets), "a.pdf")
    assert "The warden of the outer wall" in converted.markdown
    assert "and then the river rose" in converted.markdown
    assert "- 8 -" not in converted.markdown
    assert "running heads, footers and page numbers were left out" in str(converted.notices[-1])


def test_rows_at_the_edges_of_pages_are_no_running_heads() -> None:
    sheets = [
        column(
            Sheet().text(60, 800, f"Invoice {number}").text(400, 800, f"Amount due: {due} crowns"),
            60,
            700,
            PEARS,
        )
        for number, due in ((4471, "591.25"), (4480, "12.50"), (4502, "80.00"))
    ]
    text = text_of(*sheets)
    assert all(words in text for words in ("Invoice 4471", "591.25", "Invoice 4480", "Invoice 4502", "80.00"))


def test_the_header_of_a_ruled_table_over_pages_stays() -> None:
    def sheet(term: str) -> Sheet:
        grid = Sheet().grid([60, 160, 400], [810, 780, 750])
        return column(
            grid.row(790, {65: "Term", 165: "Meaning"}).row(760, {65: term, 165: "A thing."}), 60, 700, PEARS
        )

    text = text_of(sheet("Bollard"), sheet("Hawser"))
    assert "| Term | Meaning |" in text
    assert "| Hawser | A thing. |" in text


def test_names_of_columns_that_each_page_repeats_are_no_running_heads() -> None:
    sheets = []
    for page in range(3):
        sheet = Sheet().text(60, 805, "The Orchard Book", 8).row(770, STOCK[0], font="bold")
        for i in range(12):
            sheet.row(753 - 17 * i, {65: f"Cask {12 * page + i}", 185: f"{7 + i}", 275: f"{page + 2}.{i}0"})
        sheets.append(sheet)
    text = text_of(*sheets)
    assert text.startswith("| Kind | Barrels | Price |\n|---|---|---|\n| Cask 0 | 7 | 2.00 |")
    assert text.count("Kind") == 1
    assert "| Cask 11 | 18 | 2.110 |\n| Cask 12 | 7 | 3.00 |" in text


@pytest.mark.parametrize("shows_picture", [False, True])
def test_invisible_text_is_left_out_but_on_pictures(shows_picture: bool) -> None:
    sheet = column(Sheet(), 60, 760, PEARS, 80)
    sheet.operators.append(b"BT 3 Tr /helvetica 10 Tf 60 600 Td (Nobody sees this.) Tj ET")
    if shows_picture:
        sheet.operators.append(b"q 300 0 0 300 60 400 cm BI /W 1 /H 1 /CS /G /BPC 8 ID A EI Q")
    converted = read_pdf(pdf_of(sheet), "a.pdf")
    assert ("Nobody" in converted.markdown) is shows_picture
    assert ("Invisible text on page 1 was left out." in str(converted.notices)) is not shows_picture


def test_a_page_whose_text_is_all_invisible_is_read() -> None:
    sheet = Sheet()
    sheet.operators.append(b"BT 3 Tr /helvetica 10 Tf 60 600 Td (The words of a drawing.) Tj ET")
    assert text_of(sheet) == "The words of a drawing."


def test_a_note_at_the_foot_does_not_stand_in_the_sentence_over_the_page() -> None:
    first = column(Sheet(), 60, 760, f"{PEARS} The mill was built when the river", 80)
    first.rule(60, 120, 200, 120).text(60, 113, "3", 5).text(64, 109, "Some say by the sisters.", 8)
    text = text_of(first, Sheet().text(60, 760, "froze and the bridge fell into the ice."))
    assert (
        text
        == f"{PEARS} The mill was built when the river froze and the bridge fell into the ice.\n\n^3 Some say by the sisters."
    )


def test_a_table_goes_on_over_the_page_under_its_header() -> None:
    first = stock(Sheet().grid([60, 180, 270, 360], [132, 116, 100, 84]), 120)
    second = (
        Sheet()
        .grid([60, 180, 270, 360], [792, 776, 760])
        .row(780, STOCK[0])
        .row(764, {65: "Mead", 185: "2", 275: "7.95"})
    )
    assert text_of(first, second) == f"{PRICES}\n| Mead | 2 | 7.95 |"


def test_pages_without_text_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf, "can_recognise", lambda: False)  # as without the extra
    words = Sheet().text(60, 700, "Words.")
    blank = Sheet().rule(100, 100, 400, 400)
    (notice,) = read_pdf(pdf_of(words, blank, words, blank, blank), "a.pdf").notices
    assert notice.sentence.startswith("Pages 2, 4 and 5 hold no text, as scans do: install the extra `ocr`")
    with pytest.raises(BadDocument, match=r"a\.png is a picture; install the extra `ocr`"):
        pdf.read_picture(b"", "a.png")


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["PNG", "PDF"])
def test_scans_and_pictures_are_read_by_text_recognition(kind: str) -> None:
    sheet = stock(Sheet().text(60, 760, "The keeper writes down every ship that passes.", 12), 700)
    with pdfium.PdfDocument(pdf_of(sheet)) as drawn:
        picture = drawn[0].render(scale=2).to_pil().convert("RGB")
    scan = io.BytesIO()
    picture.save(scan, kind)
    document = read_document(scan.getvalue(), f"scan.{kind.lower()}")
    assert document.text == f"The keeper writes down every ship that passes.\n\n{PRICES}"
    assert "read by text recognition (OCR)" in document.told


def test_hostile_pages_take_no_time() -> None:
    def grid(n_rows: int, n_columns: int) -> list[Word]:
        return [
            Word(text, 30.0 * x + dx, 30.0 * x + dx + 5, -12.0 * y, 10)
            for y in range(n_rows)
            for x in range(n_columns)
            for text, dx in (("a", 0), ("b", 7))
        ]

    lines = [
        Piece([Word("a", 0, 20, -12.0 * y, 10), Word("b", 25, 30, -12.0 * y, 10)]) for y in range(15_000)
    ]
    signs = [Word("\u05d0", 50, 60, 0, 10), Word(f"1{'.' * 30_000}1", 0, 40, 0, 10)]
    began = time.process_time()
    assert len(pieces_of(grid(150, 150), [])) == 150 * 150
    assert list(pdf._paragraphs(Region.of(lines)))
    assert Piece(signs).text
    assert time.process_time() - began < 5


def test_a_foot_beneath_a_coloured_column_is_left_out_all_the_same() -> None:
    def page(number: int, words: str) -> Sheet:
        sheet = column(Sheet([b".9 g 0 0 170 842 re f 0 g"]), 20, 760, words, 24)
        column(sheet, 200, 760, words[::-1], 60)
        return sheet.row(30, {20: "Anna Berg, her life", 200: f"Page {number} of 3"})

    assert "Page 2" not in text_of(*(page(i, words) for i, words in enumerate((PEARS, CIDER, WASPS), 1)))
