-- A shop in memory; the parameter :rows (customers) scales it. Numbers come from a linear
-- congruential generator, so that every run has the same rows; only the attachments are random bytes.
CREATE TABLE word(id INTEGER PRIMARY KEY, text TEXT);
INSERT INTO word(text) VALUES ('ledger'),('river'),('copper'),('window'),('garden'),('signal'),
  ('harbour'),('paper'),('engine'),('winter'),('forest'),('market'),('bridge'),('silver'),('music'),
  ('station'),('letter'),('kitchen'),('mountain'),('village'),('doctor'),('island'),('morning'),
  ('candle'),('orange'),('castle'),('summer'),('travel'),('number'),('history'),('pencil'),('ocean');
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, mail TEXT, since INTEGER, balance REAL);
WITH RECURSIVE n(i, r) AS (
  SELECT 1, 12345 UNION ALL
  SELECT i + 1, (r * 1103515245 + 12345) & 2147483647 FROM n WHERE i < :rows)
INSERT INTO customer
SELECT i, 'Customer ' || (r >> 8) % 90000, 'customer' || i || '@example.org', 1500000000 + (r >> 4),
  ((r >> 6) % 1000000) / 100.0 FROM n;
CREATE TABLE sale(id INTEGER PRIMARY KEY, customer INTEGER, day INTEGER, sku TEXT, amount REAL,
  note TEXT);
WITH RECURSIVE n(i, r) AS (
  SELECT 1, 54321 UNION ALL
  SELECT i + 1, (r * 1103515245 + 12345) & 2147483647 FROM n WHERE i < :rows * 4)
INSERT INTO sale
SELECT i, (r >> 7) % :rows, 18000 + (r >> 9) % 1500, printf('SKU-%05d', (r >> 5) % 99999),
  ((r >> 8) % 50000) / 100.0,
  (SELECT text FROM word WHERE id = 1 + (r >> 10) % 32) || ' ' ||
  (SELECT text FROM word WHERE id = 1 + (r >> 15) % 32) || ' ' ||
  (SELECT text FROM word WHERE id = 1 + (r >> 20) % 32) FROM n;
CREATE INDEX sale_by_customer ON sale(customer, day);
CREATE INDEX sale_by_sku ON sale(sku);
CREATE TABLE attachment(customer INTEGER, content BLOB);
INSERT INTO attachment SELECT id, randomblob(1200) FROM customer WHERE id % 16 = 0;
