"""More chunks than one process searches: corpora in parts, shards, Ray.

`embedding` makes a corpus on disk in parts (`parts`), a shard scores the chunks of some of them (`shard`),
and `ShardedIndex` (`sharded`) asks all shards, in this process or in workers of a Ray cluster (`workers`).
"""
