"""Places of chunks in a plane: what is near in meaning lies near."""

from core.layout.kept import kept_layout, layout_of, vectors_key
from core.layout.places import LEAST_CHUNKS

__all__ = ["LEAST_CHUNKS", "kept_layout", "layout_of", "vectors_key"]
