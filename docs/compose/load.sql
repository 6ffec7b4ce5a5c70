-- One transaction of the load generator (pgbench): an order comes, changes, or goes.
\set id random(1, 10000)
\set customer random(1, 500)
\set cents random(100, 99999)
\set old random(1, 10000)
BEGIN;
INSERT INTO orders (order_id, customer_id, amount, note) VALUES (:id, :customer, :cents / 100.0, 'load')
  ON CONFLICT (order_id) DO UPDATE SET amount = EXCLUDED.amount, updated_at = now();
DELETE FROM orders WHERE order_id = :old AND :old % 10 = 0;
COMMIT;
