import java.math.BigDecimal;
import java.util.*;
import org.apache.paimon.bucket.*;
import org.apache.paimon.data.*;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.types.*;
import org.apache.paimon.utils.SerializationUtils;

/**
 * Wrote java-rows.txt with Paimon's own classes (paimon-bundle 1.4.2): name, prefixed row in hex,
 * hash, default bucket of 7, mod bucket of 7 and hive bucket of 7 ("-" where the function refuses).
 */
public class JavaRows {
  static void p(String name, Object v, DataType... ts) { row(name, new Object[] {v}, ts); }

  static void row(String name, Object[] vs, DataType... ts) {
    BinaryRow r = new InternalRowSerializer(ts).toBinaryRow(GenericRow.of(vs)).copy();
    StringBuilder hex = new StringBuilder();
    for (byte b : SerializationUtils.serializeBinaryRow(r)) hex.append(String.format("%02x", b));
    RowType rt = RowType.of(ts);
    String mod = "-", hive = "-";
    try { mod = "" + new ModBucketFunction(rt).bucket(r, 7); } catch (Throwable e) { }
    try { hive = "" + new HiveBucketFunction(rt).bucket(r, 7); } catch (Throwable e) { }
    System.out.println(name + " " + hex + " " + r.hashCode() + " " + new DefaultBucketFunction().bucket(r, 7) + " " + mod + " " + hive);
  }

  static BinaryString s(String v) { return BinaryString.fromString(v); }
  static Decimal dec(String v, int p, int s) { return Decimal.fromBigDecimal(new BigDecimal(v), p, s); }

  public static void main(String[] a) {
    DataType I = DataTypes.INT(), S = DataTypes.STRING();
    row("empty", new Object[] {});
    p("bool_true", true, DataTypes.BOOLEAN());
    p("bool_false", false, DataTypes.BOOLEAN());
    p("tinyint_min", (byte) -128, DataTypes.TINYINT());
    p("smallint_258", (short) 258, DataTypes.SMALLINT());
    p("int_min", Integer.MIN_VALUE, I);
    p("int_-7", -7, I);
    p("int_null", null, I);
    p("bigint_min", Long.MIN_VALUE, DataTypes.BIGINT());
    p("bigint_big", 1234567890123L, DataTypes.BIGINT());
    p("float_1.5", 1.5f, DataTypes.FLOAT());
    p("float_-0", -0.0f, DataTypes.FLOAT());
    p("float_nan", Float.NaN, DataTypes.FLOAT());
    p("double_-2.5", -2.5, DataTypes.DOUBLE());
    p("double_0", 0.0, DataTypes.DOUBLE());
    p("double_-0", -0.0, DataTypes.DOUBLE());
    p("double_nan", Double.NaN, DataTypes.DOUBLE());
    p("date_20454", 20454, DataTypes.DATE());
    p("date_-719164", -719164, DataTypes.DATE());
    p("time_3723000", 3723000, DataTypes.TIME(3));
    for (int n : new int[] {0, 1, 7, 8, 9, 16, 17}) p("string_" + n, s("äbcdefghijklmnopq".substring(0, Math.max(0, n - 1)) + ""), S);
    p("char_5", s("ab   "), DataTypes.CHAR(5));
    p("bytes_ff", new byte[] {-1, 0, 127}, DataTypes.BYTES());
    p("bytes_long", new byte[] {-1, -2, -3, -4, -5, -6, -7, -8, -9}, DataTypes.BYTES());
    p("string_null", null, S);
    for (String v : new String[] {"0", "12345.67", "-12345.67", "100", "-0.10"}) {
      p("decimal10_" + v, dec(v, 10, 2), DataTypes.DECIMAL(10, 2));
      p("decimal20_" + v, dec(v, 20, 2), DataTypes.DECIMAL(20, 2));
    }
    p("decimal38_max", dec("9".repeat(38), 38, 0), DataTypes.DECIMAL(38, 0));
    p("decimal38_min", dec("-" + "9".repeat(20) + "." + "9".repeat(18), 38, 18), DataTypes.DECIMAL(38, 18));
    p("decimal38_-128", dec("-128", 38, 0), DataTypes.DECIMAL(38, 0));
    p("decimal38_128", dec("128", 38, 0), DataTypes.DECIMAL(38, 0));
    p("decimal20_null", null, DataTypes.DECIMAL(20, 2));
    p("decimal18_null", null, DataTypes.DECIMAL(18, 2));
    for (int pr : new int[] {0, 3, 6, 9}) {
      p("ts" + pr, Timestamp.fromEpochMillis(1767225600123L, pr > 6 ? 456789 : pr > 3 ? 456000 : 0), DataTypes.TIMESTAMP(pr));
      p("ltz" + pr + "_neg", Timestamp.fromEpochMillis(-1, pr > 3 ? 999000 : 0), DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(pr));
      p("ts" + pr + "_null", null, DataTypes.TIMESTAMP(pr));
    }
    row("int_string", new Object[] {42, s("hello-world")}, I, S);
    row("partition", new Object[] {s("20260101"), 5}, S, I);
    row("mixed", new Object[] {null, s("abc"), dec("12345.67", 20, 2), Timestamp.fromEpochMillis(1767225600123L, 456000), s("8chars!!")},
        I, S, DataTypes.DECIMAL(20, 2), DataTypes.TIMESTAMP(6), S);
    row("null_between", new Object[] {s("a long text"), null, null, s("another one")}, S, DataTypes.DECIMAL(38, 18), DataTypes.TIMESTAMP(9), S);
    Object[] wide = new Object[60];
    DataType[] wt = new DataType[60];
    for (int i = 0; i < 60; i++) { wt[i] = I; wide[i] = i % 3 == 0 ? null : (Object) i; }
    row("wide_60", wide, wt);
    // Nested values.
    p("array_int", new GenericArray(new Object[] {1, null, 3}), DataTypes.ARRAY(I));
    p("array_empty", new GenericArray(new Object[] {}), DataTypes.ARRAY(I));
    p("array_bool", new GenericArray(new Object[] {true, null, false}), DataTypes.ARRAY(DataTypes.BOOLEAN()));
    p("array_smallint", new GenericArray(new Object[] {(short) 1, (short) -1, null}), DataTypes.ARRAY(DataTypes.SMALLINT()));
    p("array_string", new GenericArray(new Object[] {s("a"), null, s("longer than 7"), s("")}), DataTypes.ARRAY(S));
    p("array_decimal", new GenericArray(new Object[] {dec("1.50", 20, 2), null, dec("-2.25", 20, 2)}), DataTypes.ARRAY(DataTypes.DECIMAL(20, 2)));
    p("array_decimal10", new GenericArray(new Object[] {dec("1.50", 10, 2), null}), DataTypes.ARRAY(DataTypes.DECIMAL(10, 2)));
    p("array_ts6", new GenericArray(new Object[] {Timestamp.fromEpochMillis(5, 7000), null}), DataTypes.ARRAY(DataTypes.TIMESTAMP(6)));
    p("array_40", new GenericArray(new Object[40]), DataTypes.ARRAY(DataTypes.BIGINT()));
    p("array_array", new GenericArray(new Object[] {new GenericArray(new Object[] {1, 2}), null, new GenericArray(new Object[] {})}), DataTypes.ARRAY(DataTypes.ARRAY(I)));
    Map<Object, Object> m = new LinkedHashMap<>();
    m.put(s("k1"), 10);
    p("map_one", new GenericMap(m), DataTypes.MAP(S, I));
    m.put(s("a longer key"), null);
    p("map_two", new GenericMap(m), DataTypes.MAP(S, I));
    Map<Object, Object> ms = new LinkedHashMap<>();
    ms.put(s("x"), 2);
    p("multiset", new GenericMap(ms), DataTypes.MULTISET(S));
    DataType rt = DataTypes.ROW(DataTypes.FIELD(0, "a", I), DataTypes.FIELD(1, "b", S), DataTypes.FIELD(2, "c", DataTypes.DECIMAL(20, 2)));
    p("row", GenericRow.of(7, s("a longer text"), null), rt);
    p("array_row", new GenericArray(new Object[] {GenericRow.of(null, s("x"), dec("1", 20, 2)), null}), DataTypes.ARRAY(rt));
    p("variant", GenericVariant.fromJson("{\"a\":1}"), DataTypes.VARIANT());
  }
}
