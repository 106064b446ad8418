"""Text of scans and pictures, with the extra `ocr`.

rapidocr does it, with the models that come with it and no network. It makes mistakes, so a notice names what
was read this way.
"""

from __future__ import annotations

import importlib.util
import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pypdfium2 as pdfium
from numpy.typing import NDArray
from PIL import Image

from core.ingest.limits import MAX_OCR_PIXELS, MAX_PICTURE_PIXELS, check_bound
from core.ingest.pdf_page import Page, Word, normal

HOW = "install the extra `ocr` (pip install rapidocr) and open it again to have it read by text recognition"
_MOST_SIDE = 1_216
"""Pixels of the longer side in which lines are looked for: memory grows with its square."""
_SURE = 0.5
"""Below this a line is more likely a stain."""


def can_recognise() -> bool:
    return importlib.util.find_spec("rapidocr") is not None


class Recogniser:
    """Reads pictures until its computing time is over; its models are loaded when first needed."""

    def __init__(self, seconds: float) -> None:
        self._until = time.process_time() + seconds
        self._model: Callable[[NDArray[np.uint8]], Any] | None = None

    @property
    def has_time(self) -> bool:
        return time.process_time() < self._until

    def read_page(self, page: pdfium.PdfPage) -> Page:
        """The lines on a page of a PDF, whatever is drawn on it."""
        width, height = page.get_size()
        scale = min(3.0, (MAX_OCR_PIXELS / max(width * height, 1.0)) ** 0.5)
        return self.read(page.render(scale=scale).to_pil().convert("RGB"))

    def read(self, picture: Image.Image) -> Page:
        """The lines of a picture."""
        if self._model is None:
            self._model = _model()
        found = self._model(np.asarray(picture)[:, :, ::-1])
        words = []
        for box, text, score in zip(
            found.boxes if found.boxes is not None else (), found.txts or (), found.scores or (), strict=True
        ):
            if score >= _SURE and text.strip():
                top, bottom = (float(box[:2, 1].mean()), float(box[2:, 1].mean()))
                x0, x1 = float(box[:, 0].min()), float(box[:, 0].max())
                height = max(1.0, bottom - top)
                words.append(
                    Word(normal(" ".join(text.split())), x0, x1, bottom - 0.22 * height, 0.75 * height)
                )
        return Page(words, top=0.0, bottom=float(picture.height))


def _model() -> Callable[[NDArray[np.uint8]], Any]:
    from rapidocr import RapidOCR

    threads = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    side = {"Det.limit_type": "max", "Det.limit_side_len": _MOST_SIDE}
    model: Callable[[NDArray[np.uint8]], Any] = RapidOCR(
        params={"Global.log_level": "critical", "Global.use_cls": False, **threads, **side}
    )
    return model


def opened(data: bytes, name: str) -> Image.Image:
    """A PNG or JPEG, no larger than what is recognised. Raises BadDocument."""
    picture: Image.Image = Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
    width, height = picture.size
    remedy = "make it smaller and open that"
    check_bound(f"{name} has", width * height, MAX_PICTURE_PIXELS, "pixels", remedy)
    picture = picture.convert("RGB")
    most = (MAX_OCR_PIXELS / (width * height)) ** 0.5
    return picture.resize((int(width * most), int(height * most))) if most < 1 else picture
