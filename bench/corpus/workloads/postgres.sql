-- One backend's private memory: a hash join and aggregate that a cursor keeps alive. :rows scales it.
-- (Shared buffers are shared memory and not captured.)
\set QUIET on
\pset tuples_only on
\pset format unaligned
SET max_parallel_workers_per_gather = 0;
SET enable_sort = off;
SET enable_mergejoin = off;
SET enable_nestloop = off;
CREATE UNLOGGED TABLE sale AS
  SELECT i AS id, hashint4(i) & 1048575 AS customer, 'SKU-' || (hashint4(i + 7) & 65535) AS sku,
    (hashint4(i + 9) & 65535) / 100.0 AS amount, 'note ' || (hashint4(i + 3) & 4095) || ' for ' || left(md5((i / 3)::text), 12) AS note
  FROM generate_series(1, :rows) AS i;
ANALYZE sale;
BEGIN;
DECLARE kept CURSOR FOR
  SELECT a.sku, a.note, count(*), sum(b.amount), min(b.note)
  FROM sale a JOIN sale b ON a.id = b.id
  GROUP BY a.sku, a.note, a.customer;
\o /dev/null
FETCH 1 FROM kept;
\o
SELECT 'backend ' || pg_backend_pid();
\echo ready
