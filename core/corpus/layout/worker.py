"""The child process that lays out vectors.

The library that does it has ended Python on odd vectors, takes a core for a minute, and can't be stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.base.child import answering_end, send_frame, serve
from core.corpus.layout.places import places_of

MAX_BYTES = 3 * 2**30
"""Beyond what is taken at the start; vectors of 200,000 chunks are 0.3 GiB, and there are three copies."""


def main() -> None:
    """Serves jobs until stdin ends."""
    answers = answering_end()

    def job(head: Mapping[str, Any], payload: bytes) -> None:
        vectors = np.frombuffer(payload, np.dtype(head["dtype"])).reshape(head["n"], -1)
        places = places_of(vectors, lambda done, total: send_frame(answers, {"done": done, "total": total}))
        send_frame(answers, {}, places.astype("<u2").tobytes())

    serve(job, MAX_BYTES)


if __name__ == "__main__":
    main()
