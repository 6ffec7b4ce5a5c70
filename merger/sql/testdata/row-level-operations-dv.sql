CREATE TABLE my_table (product_id BIGINT, price DOUBLE, sales BIGINT, dt STRING) PARTITIONED BY (dt) TBLPROPERTIES ('deletion-vectors.enabled' = 'true');

INSERT INTO my_table VALUES (1, 10.0, 1, '2026-09-10'), (1, 10.0, 1, '2026-09-10'), (2, -1.0, 5, '2026-09-10'), (3, NULL, 7, '2026-09-11');

DELETE FROM my_table WHERE price < 0;

UPDATE my_table SET price = 12.0
WHERE product_id = 1 AND dt = '2026-09-10';

SELECT * FROM my_table ORDER BY product_id;
-- 1  12.0  1  2026-09-10
-- 1  12.0  1  2026-09-10
-- 3  NULL  7  2026-09-11

CREATE TEMPORARY VIEW updates AS
SELECT CAST(1 AS BIGINT) AS product_id, CAST(12.0 AS DOUBLE) AS price,
       CAST(3 AS BIGINT) AS sales, '2026-09-10' AS dt;

MERGE INTO my_table AS target
USING updates AS source
ON target.product_id = source.product_id AND target.dt = source.dt
WHEN MATCHED THEN UPDATE SET
    target.price = source.price, target.sales = source.sales
WHEN NOT MATCHED THEN INSERT *;

SELECT * FROM my_table ORDER BY product_id;
-- 1  12.0  3  2026-09-10
-- 1  12.0  3  2026-09-10
-- 3  NULL  7  2026-09-11

CREATE OR REPLACE TEMPORARY VIEW updates AS
SELECT * FROM VALUES (9L, 1.0D, 1L, '2026-09-12'), (9L, 2.0D, 2L, '2026-09-12') AS v(product_id, price, sales, dt);

MERGE INTO my_table AS target
USING updates AS source
ON target.product_id = source.product_id AND target.dt = source.dt
WHEN MATCHED THEN UPDATE SET
    target.price = source.price, target.sales = source.sales
WHEN NOT MATCHED THEN INSERT *;

SELECT * FROM my_table WHERE product_id = 9 ORDER BY price;
-- 9  1.0  1  2026-09-12
-- 9  2.0  2  2026-09-12

MERGE INTO my_table AS target
USING updates AS source
ON target.product_id = source.product_id AND target.dt = source.dt
WHEN MATCHED THEN UPDATE SET
    target.price = source.price, target.sales = source.sales
WHEN NOT MATCHED THEN INSERT *;
-- error MERGE_CARDINALITY_VIOLATION

DELETE FROM my_table WHERE dt = '2026-09-12';

SELECT count(*) FROM my_table;
-- 3

CREATE TABLE mutable_events (
    event_id BIGINT,
    payload STRING
) USING paimon
TBLPROPERTIES (
    'deletion-vectors.enabled' = 'true'
);

INSERT INTO mutable_events VALUES (1, 'a'), (2, 'b');
DELETE FROM mutable_events WHERE event_id = 1;

SELECT * FROM mutable_events;
-- 2  b
