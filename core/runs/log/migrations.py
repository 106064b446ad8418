"""The tables of the log.

Everything large (Q-values, texts, chunk tables) is cut into parts in one table, `blobs`, and referred to by
number. DuckDB rewrites the last row group of a table at each checkpoint and reads strings of a row group
together: after 960 steps of 160,000 chunks whole blobs took 2.3 s a checkpoint and up to a second to read a
run, against 0.1 s and 0.02 s in parts; and damage to the file costs the runs within 8 MB of it.

A log of any earlier version is brought up to date in one transaction by what it lacks, so it is never between
two versions. What a version had stays as it was: new columns and tables are added, none is changed.
"""

from __future__ import annotations

from pathlib import Path

from core.base.errors import LogError
from core.runs.log.database import Connection, table_names

VERSION = 11
"""Counts the additions since the first form of the tables."""

SCHEMA = """
    -- Runs, their events with the Q-values of all chunks, and the documents they read, each text once.
    CREATE TABLE IF NOT EXISTS runs (
        run_id VARCHAR PRIMARY KEY, owner VARCHAR, shared BOOLEAN NOT NULL, status VARCHAR NOT NULL,
        message VARCHAR, created_at TIMESTAMP NOT NULL, finished_at TIMESTAMP, method VARCHAR NOT NULL,
        query VARCHAR NOT NULL, config JSON NOT NULL, chunking JSON NOT NULL, checkpoint VARCHAR NOT NULL,
        checkpoint_fingerprint VARCHAR NOT NULL, vectors VARCHAR NOT NULL, n_chunks BIGINT NOT NULL,
        seed BIGINT NOT NULL, parent_run_id VARCHAR, fork_step INTEGER, label JSON);
    CREATE TABLE IF NOT EXISTS events (
        run_id VARCHAR, position INTEGER, kind VARCHAR NOT NULL, event JSON NOT NULL, q_values BIGINT,
        PRIMARY KEY (run_id, position));
    CREATE TABLE IF NOT EXISTS documents (sha256 VARCHAR PRIMARY KEY, kind VARCHAR NOT NULL, text BIGINT);
    CREATE TABLE IF NOT EXISTS blobs (
        blob_id BIGINT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL USING COMPRESSION uncompressed);
    CREATE TABLE IF NOT EXISTS run_documents (
        run_id VARCHAR, position INTEGER, sha256 VARCHAR NOT NULL, title VARCHAR NOT NULL,
        PRIMARY KEY (run_id, position));
    -- The chunk borders a run saw, each table once: old runs outlive a change of the chunker.
    CREATE TABLE IF NOT EXISTS chunk_tables (sha256 VARCHAR PRIMARY KEY, columns BIGINT NOT NULL);
    ALTER TABLE run_documents ADD COLUMN IF NOT EXISTS table_sha256 VARCHAR;
    -- Texts that a run did not bring on import: it must not show what another's run brought.
    ALTER TABLE run_documents ADD COLUMN IF NOT EXISTS withheld BOOLEAN DEFAULT false;
    -- What a run left beside its steps; a short value lies in the row, where SQL reads it, a long one in blobs.
    CREATE TABLE IF NOT EXISTS run_details (
        run_id VARCHAR, name VARCHAR, value JSON, blob BIGINT, PRIMARY KEY (run_id, name));
    -- Evaluations, a row an example; what they amount to is computed from the rows.
    CREATE TABLE IF NOT EXISTS evaluations (
        evaluation_id VARCHAR PRIMARY KEY, owner VARCHAR, created_at TIMESTAMP NOT NULL, config JSON NOT NULL);
    CREATE TABLE IF NOT EXISTS episode_rows (
        evaluation_id VARCHAR, position INTEGER, id VARCHAR NOT NULL, task VARCHAR NOT NULL,
        split VARCHAR NOT NULL, length BIGINT, chunk_tokens BIGINT, seed BIGINT NOT NULL,
        n_chunks BIGINT NOT NULL, support BIGINT[] NOT NULL, method VARCHAR NOT NULL,
        checkpoint VARCHAR NOT NULL, fingerprint VARCHAR NOT NULL, trained_on VARCHAR,
        step_budget INTEGER NOT NULL, stop_threshold DOUBLE, temperature DOUBLE NOT NULL,
        beam_width INTEGER NOT NULL, top_k_actions INTEGER, chosen BIGINT[] NOT NULL,
        q_values DOUBLE[] NOT NULL, best_q DOUBLE[] NOT NULL, tokens BIGINT[] NOT NULL,
        milliseconds DOUBLE NOT NULL, PRIMARY KEY (evaluation_id, position));
    ALTER TABLE episode_rows ADD COLUMN IF NOT EXISTS kept BIGINT[];
    ALTER TABLE episode_rows ADD COLUMN IF NOT EXISTS answer_em DOUBLE;
    ALTER TABLE episode_rows ADD COLUMN IF NOT EXISTS answer_f1 DOUBLE;
    -- Trainings: the whole configuration, and all events of their progress, which curves are drawn from.
    CREATE TABLE IF NOT EXISTS trainings (
        training_id VARCHAR PRIMARY KEY, owner VARCHAR, created_at TIMESTAMP NOT NULL,
        folder VARCHAR NOT NULL, config JSON NOT NULL);
    CREATE TABLE IF NOT EXISTS training_events (
        training_id VARCHAR, position INTEGER, kind VARCHAR NOT NULL, event JSON NOT NULL,
        PRIMARY KEY (training_id, position));
    -- Which runs a copy of the log was given, so that what is deleted here goes there too.
    CREATE TABLE IF NOT EXISTS copied_runs (copy VARCHAR, run_id VARCHAR, PRIMARY KEY (copy, run_id));
    -- What had been added to the run by then, as a hash, so that what is added later goes there too.
    ALTER TABLE copied_runs ADD COLUMN IF NOT EXISTS added VARCHAR;
    -- Questions of a reader's own, with the passages that they marked, see core.runs.log.marks.
    CREATE TABLE IF NOT EXISTS marked_questions (
        question_id VARCHAR PRIMARY KEY, owner VARCHAR, created_at TIMESTAMP NOT NULL, value JSON NOT NULL);
    CREATE TABLE IF NOT EXISTS migrations (
        version INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_at TIMESTAMP NOT NULL);"""


def version_of(connection: Connection, path: Path) -> int:
    """The log's version; 0 for a new file. Raises LogError for no log, or a newer version's."""
    tables = table_names(connection)
    if not tables:
        return 0
    if "migrations" not in tables:
        raise LogError(f"{path} is a DuckDB file but no log of this program; pass another file with --log")
    [(version,)] = connection.execute("SELECT coalesce(max(version), 0) FROM migrations").fetchall()
    if version > VERSION:
        raise LogError(
            f"the log {path} has version {version}, but this program knows none above {VERSION};"
            " update it or pass another file with --log"
        )
    return int(version)


def migrate(connection: Connection, path: Path) -> None:
    """Bring the log up to date, or leave it as it is."""
    if version_of(connection, path) == VERSION:
        return
    connection.execute("BEGIN")
    try:
        connection.execute(SCHEMA)
        connection.execute(f"INSERT INTO migrations VALUES ({VERSION}, 'schema', now()::TIMESTAMP)")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
