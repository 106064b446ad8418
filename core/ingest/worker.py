"""The child process that converts files, a job a file.

Its limits are those of core.base.child: memory, computing time and clock time a job, and no file may grow by
a byte. Does not protect against errors in the interpreter itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.base.child import answering_end, send_frame, serve
from core.base.errors import BadDocument
from core.ingest.limits import MAX_CONVERSION_BYTES

_TITLE_CHARACTERS = 2_000


def main() -> None:
    """Serves jobs until stdin ends."""
    answers = answering_end()
    from core.ingest.convert import convert

    def job(head: Mapping[str, Any], data: bytes) -> None:
        def on_page(done: int, total: int) -> None:
            send_frame(answers, {"done": done, "total": total})

        try:
            converted = convert(
                data, head["form"], head["name"], on_page, keep_side_matter=head["keep_side_matter"]
            )
        except BadDocument as error:
            send_frame(answers, {"refused": str(error)})
            return
        markdown = converted.markdown.encode("utf-8", "surrogatepass")
        reply = {
            "title": converted.title[:_TITLE_CHARACTERS],
            "notices": [(notice.sentence, notice.at) for notice in converted.notices],
            "markdown": len(markdown),
        }
        send_frame(answers, reply, markdown + json.dumps(converted.json_ld).encode())

    serve(job, MAX_CONVERSION_BYTES)


if __name__ == "__main__":
    main()
