CREATE TABLE my_table (
    a BIGINT,
    b STRING DEFAULT 'my_value',
    c INT DEFAULT 5,
    numbers ARRAY<INT> DEFAULT ARRAY(1, 2, 3),
    scores MAP<INT, INT> DEFAULT MAP(1, 10, 2, 20),
    nested STRUCT<x: INT, y: INT> DEFAULT STRUCT(42, 7)
);

INSERT INTO my_table (a) VALUES (1), (2);

SELECT a, b, c FROM my_table ORDER BY a;
-- 1  my_value  5
-- 2  my_value  5

INSERT INTO my_table (a, b, c) VALUES (3, DEFAULT, NULL);

SELECT a, b, c FROM my_table WHERE a = 3;
-- 3  my_value  5

SELECT numbers, scores[1], nested.x FROM my_table WHERE a = 3;
-- [1, 2, 3]  10  42

CREATE TABLE default_example (a INT, b INT DEFAULT 2);
INSERT INTO default_example (a) VALUES (1);

ALTER TABLE default_example ALTER COLUMN b SET DEFAULT 3;
INSERT INTO default_example (a) VALUES (2);

SELECT * FROM default_example ORDER BY a;
-- 1  2
-- 2  3

ALTER TABLE my_table ALTER COLUMN numbers SET DEFAULT ARRAY(4, 5);
ALTER TABLE my_table ALTER COLUMN scores SET DEFAULT MAP(3, 30);
INSERT INTO my_table (a) VALUES (4);

SELECT a, numbers, scores[3] FROM my_table WHERE a = 4;
-- 4  [4, 5]  30

ALTER TABLE default_example ADD COLUMN d INT;
ALTER TABLE default_example ALTER COLUMN d SET DEFAULT 5;

INSERT INTO default_example (a) VALUES (3);

SELECT * FROM default_example ORDER BY a;
-- 1  2  NULL
-- 2  3  NULL
-- 3  3  5

CREATE TABLE lifted (a INT, m MAP<STRING, STRING> DEFAULT MAP('key1', 'value1'));
ALTER TABLE lifted ADD COLUMN e INT DEFAULT 7;
ALTER TABLE lifted ADD COLUMN ts TIMESTAMP DEFAULT current_timestamp();
INSERT INTO lifted (a) VALUES (1);

SELECT a, m['key1'], e, ts IS NOT NULL FROM lifted;
-- 1  value1  7  true

CREATE TABLE strict (a INT, b INT NOT NULL DEFAULT 2);
INSERT INTO strict VALUES (1, NULL);
-- error NOT_NULL_ASSERT_VIOLATION
