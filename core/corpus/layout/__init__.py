"""Places of chunks in a plane: like lies near like."""

from core.corpus.layout.groups import clusters, heading_groups
from core.corpus.layout.kept import kept_layout, layout_of, vectors_key
from core.corpus.layout.places import LEAST_CHUNKS

__all__ = ["LEAST_CHUNKS", "clusters", "heading_groups", "kept_layout", "layout_of", "vectors_key"]
