"""More chunks than one process searches: corpora in parts, shards, Ray.

The rest of `core` is not told of this package; commands find it through `--corpus` and `--cluster`. A corpus
lies on disk in parts (`parts`), a shard scores the chunks of some of them (`shard`) with `ChunkIndex`, and
`ShardedIndex` (`sharded`) asks all shards and puts their answers together. Shards are in this process or in
workers of a Ray cluster (`workers`). `embedding` makes the parts.
"""
