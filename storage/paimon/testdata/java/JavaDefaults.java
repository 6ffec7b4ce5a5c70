import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.paimon.data.*;
import org.apache.paimon.types.*;
import org.apache.paimon.utils.*;

/**
 * Wrote defaults.txt with Paimon's own converter of column defaults (DefaultValueUtils and the cast
 * rules of commit 5dacde516b on paimon-bundle 1.4.2, UTC): column type, default text as a Go string
 * literal, value; separated by tabs. Values: ERR, NULL, numbers as they are, FLOAT and DOUBLE as
 * their bits in hex, DECIMAL unscaled, text and binary in hex, timestamps as milliseconds.nanoseconds.
 */
public class JavaDefaults {
  static String quote(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (int c : s.codePoints().toArray()) {
      if (c >= ' ' && c < 127 && c != '"' && c != '\\') b.append((char) c);
      else b.append(String.format("\\U%08x", c));
    }
    return b.append('"').toString();
  }

  static String hex(byte[] bs) {
    StringBuilder b = new StringBuilder("x");
    for (byte x : bs) b.append(String.format("%02x", x));
    return b.toString();
  }

  static String value(Object o) {
    if (o == null) return "NULL";
    if (o instanceof Float) return String.format("%08x", Float.floatToIntBits((Float) o));
    if (o instanceof Double) return String.format("%016x", Double.doubleToLongBits((Double) o));
    if (o instanceof Decimal) return ((Decimal) o).toBigDecimal().unscaledValue().toString();
    if (o instanceof BinaryString) return hex(((BinaryString) o).toBytes());
    if (o instanceof byte[]) return hex((byte[]) o);
    if (o instanceof Timestamp) return ((Timestamp) o).getMillisecond() + "." + ((Timestamp) o).getNanoOfMillisecond();
    return o.toString();
  }

  static void p(DataType t, String... texts) {
    for (String s : texts) {
      String v;
      try {
        v = value(DefaultValueUtils.convertDefaultValue(t, s));
      } catch (Exception e) {
        v = "ERR";
      }
      System.out.println(t.asSQLString() + "\t" + quote(s) + "\t" + v);
    }
  }

  static final String[] WORDS = {
    "", " ", "'", "''", "'''", "'a", "a'", "NULL", "null", "'null'", "5", "'5'", " 5", "5 ", "+5", "-5", "--5", "+-5", "+", "-", ".", "5.", ".5", "-.5", "+.5", "-.", "5.9", "-5.9",
    "5.9x", "5..", "5.1.2", "0", "-0", "00012", "127", "128", "-128", "-129", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649",
    "99999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "1_000", "0x10", "1+1", "5L", "CAST(5 AS INT)", "\"5\"", "1e3", "1E3", "\u0665", "5\t",
    "true", "TRUE", "tRuE", "t", "T", "y", "yes", "YES", "1", "f", "false", "F", "n", "no", "N", "on", "off", "2", " true", "'true'", "\u212a", "ye\u017f"
  };
  static final String[] FLOATS = {
    "1.5", "'1.5'", "99.99D", "1.5f", "1.5F", "1d", "1dd", "d", "D", "1e", "1e5", "1e+5", "1E-5", "1.e5", ".e5", "1e5f", "NaN", "-NaN", "+NaN", "nan", "NaNd", "Infinity", "-Infinity", "+Infinity",
    "Infinityf", "infinity", "inf", "INF", "'NaN'", " 1.5", "1.5 ", "\t1.5\n", "\u00011.5\u0001", "\u00a01.5", "-0.0", "-0", "0x1p3", "0X1P3", "0x1.8p1", "0x1.8", "0x1p3f", "0x1p3d", "0xdp0", "0x.8p1", "0x.p1", "-0x1p-2",
    "0x1_0p0", "0x1p1_0", "1e400", "-1e400", "3.4e39", "3.4028235e38", "3.4028236e38", "1.1D", "1e-400", "1.0E-7", "4.9E-324", "2.4e-324", "2.5e-324", "1.4e-45", "0.1", "16777217",
    "123456789012345678901234567890", "0.1e1e1", "1,5", "1.5.5", "\u0661", "+1.5", "++1.5", "e5", "1e 5", "0x", "0b1", "1_0"
  };
  static final String[] DECIMALS = {
    "1.2", "1.234", "1.235", "1.245", "-1.235", "-1.234", "12345.6", "999.99", "999.994", "999.995", "-999.995", "1e2", "1E2", "1e+2", "1e-2", "1e-3", "5e-3", "4.9e-3", "'3.10'", "1.2BD", "1.2d", " 1", "1 ",
    "0", "-0", "0.00", "000001.50", "1.", ".5", ".", "", "+1.5", "-.5", "+", "1e", "1e+", "e1", "1e400", "1e-400", "0e400", "0e-400", "12345678901234567890123456.1234567891", "-0.0000000001", "-0.00000000005", "-0.00000000004",
    "0.12345678901234567890123456789012345678901234567890", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "100000000000000000000000000000000000000",
    "99999999999999999999999999999999999999.4", "99999999999999999999999999999999999999.5", "9999999999999999999999999999.99999999995", "0.00000000000000000000000000000000000000000000000000000000000001",
    "1e37", "1e38", "1e28", "1e27", "1234567890123456789012345678901234567890e-20", "5e-1", "4.99999999999999999999999999999999999999999999999999e-1", "1e2147483647", "1e2147483648", "1e-2147483647", "1e99999999999", "NaN", "Infinity", "0x10", "1_0", "'", "''"
  };
  static final String[] DATES = {
    "2024-01-02", "'2024-01-02'", "DATE '2024-01-02'", "2024-1-2", "2024-01", "2024-1", "2024", "19000", "-1", "-", "+1", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-02-30", "2024-04-31", "2024-13-01", "2024-00-01",
    "2024-01-00", "2024-01-32", "current_date()", "2024-01-02T00:00:00", "2024-01-02 03:04:05", "2024-01-02 x", "2024-01-02 ", " 2024-01-02", "\t2024-01-02", "2024 -01-02", "2024- 01-02", "2024-01 -02", "2024-\t01-\t02\t", "0001-01-01",
    "0000-01-01", "0000-02-29", "9999-12-31", "10000-01-01", "-0001-01-01", "+2024-01-02", "24-01-02", "2024-001-002", "02024-01-02", "2024-01-02-03", "2024--02", "2024-01-", "-01-02", "2024-0x1-02", "99999999999-01-01",
    "99999999999", "2147483647", "2147483648", "-2147483648", "2024/01/02", "20240102", "", "1582-10-10", "\u0661"
  };
  static final String[] TIMES = {
    "03:04:05", "'03:04:05'", "03:04:05.123", "03:04:05.1", "03:04:05.12", "03:04:05.1234", "03:04:05.1235", "03:04:05.9996", "03:04:05.", "03:04:05.x", "03:04:05.1x3", "3:4:5", "03:04", "03", "3", "1000", "-5", "86399999", "86400000",
    "23:59:59.999", "23:59:59.9999", "24:00:00", "25:00", "00:60", "00:00:60", "00:00:61", "99:99:99", " 03:04:05", "03:04:05 ", "03 :04: 05", "03:04:05Z", "03:04:05+01:00", "03:04:05-01:00", "03:04:05+1", "03:04:05 + 01", "03+01", "03:04+01:30",
    "00:00:00+01:00", "00:00:00-01:00", "23:00:00-02:00", "03:04:05+", "03:04:05+x", "03:04:05+01:00:00", "::", "03::05", "TIME '03:04:05'", "", "x", "03:04:05:06", "2147483647", "2147483648", "03:04:05.+1", ":", "03:", "-03:04", "+03:04", "1.5", "03.5", "03:04.5"
  };
  static final String[] STAMPS = {
    "2024-01-02 03:04:05", "'2024-01-02 03:04:05'", "2024-01-02T03:04:05", "2024-01-02T03:04:05.123456", "2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.1234567891", "2024-01-02", "2024-1-2", "2024-1-2 3:4:5", "2024-01-02T3:4:5",
    "2024-01-02T03:04", "2024-01-02T3:4", "2024-01-02 03:04", "2024-01-02T03", "2024-01-02 03:04:05.", "2024-01-02T03:04:05.", "2024-01-02T03:04.5", "2024-01-02t03:04:05", "2024-01-02 03:04:05T03:04", "2024-01-02 03:04:05.9", "2024-01-02 23:59:59.999999999",
    "1700000000000000", "1700000000000", "-1", "-1001", "-999999", "0", "5", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "TIMESTAMP '2024-01-02 03:04:05'", "current_timestamp()",
    "2024-01-02 03:04:05Z", "2024-01-02 03:04:05+02:00", "2024-01-02T03:04:05Z", "2024-02-30", "2023-02-29", "2024-02-29", "2024-04-31", "2024-13-01", "2024-01-00", "2024-01-32", "2024-01-02 24:00:00", "2024-01-02 23:60:00", "2024-01-02 23:59:60", "2024-01-02 23:59:59",
    "0001-01-01 00:00:00", "0000-01-01", "0000-12-31 23:59:59", "9999-12-31 23:59:59.999999", "10000-01-01", "+10000-01-01", "-0001-01-01", "+2024-01-02", "24-01-02", "024-01-02", "02024-01-02", "2024-001-02", "2024-01-002", "2024-1-02", "2024-01-2", "2024-01-02 003:04:05", "2024-01-02 03:004:05",
    "2024-01-02 3:04:5", "2024-01-02 03:4:05", " 2024-01-02", "2024-01-02 ", "2024-01-02  03:04:05", "2024/01/02", "", "1969-12-31 23:59:59.999999", "1582-10-10 00:00:00", "123456-01-01", "+123456-01-01", "2024-01-02 03:04:05,5", "\u0662024-01-02", "2024-01-02 \u0663:04:05", "1", "-", "12.5"
  };
  static final String[] TEXTS = {
    "'my_value'", "my_value", "'it''s'", "\"dq\"", "'a'||'b'", "' sp '", " 'x'", "'x' ", "'a\nb'", "concat('a','b')", "abcdef", "'abcdef'", "ab", "'ab'", "\u00e9\u00e8\u00ea\u00eb\u00ec", "\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00", "'\u00e9'", "''x''", "'it's'", "'a\\b'", "'\"q\"'",
    "X'1CC7'", "x'00'", "0x00", "\u0000", "a\u0000b", "'abc'", "     ", "a     ", "e\u0301e\u0301e\u0301"
  };

  public static void main(String[] a) {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    for (DataType t : new DataType[] {DataTypes.TINYINT(), DataTypes.SMALLINT(), DataTypes.INT(), DataTypes.BIGINT(), DataTypes.BOOLEAN(), DataTypes.INT().notNull()}) p(t, WORDS);
    for (DataType t : new DataType[] {DataTypes.FLOAT(), DataTypes.DOUBLE()}) { p(t, WORDS); p(t, FLOATS); }
    for (int[] d : new int[][] {{5, 2}, {18, 0}, {38, 10}, {38, 0}, {38, 38}}) p(DataTypes.DECIMAL(d[0], d[1]), DECIMALS);
    p(DataTypes.DECIMAL(5, 2), WORDS);
    p(DataTypes.DATE(), DATES);
    p(DataTypes.DATE(), TIMES);
    for (int n : new int[] {0, 3, 9}) p(DataTypes.TIME(n), TIMES);
    p(DataTypes.TIME(3), DATES);
    for (int n = 0; n <= 9; n++) p(DataTypes.TIMESTAMP(n), STAMPS);
    for (int n : new int[] {0, 3, 6, 7, 9}) p(DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(n), STAMPS);
    for (DataType t : new DataType[] {DataTypes.STRING(), DataTypes.VARCHAR(3), DataTypes.CHAR(4), DataTypes.CHAR(1), DataTypes.BYTES(), DataTypes.VARBINARY(2), DataTypes.BINARY(4), DataTypes.BINARY(1)}) { p(t, TEXTS); p(t, "", "'", "''", "'''", "NULL", "null", "'null'"); }
    p(DataTypes.VARIANT(), "'{}'", "1");
    p(DataTypes.MULTISET(DataTypes.STRING()), "{a -> 1}");
  }
}
