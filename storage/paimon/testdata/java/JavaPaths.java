import java.math.BigDecimal;
import java.util.*;
import org.apache.paimon.data.*;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.types.*;
import org.apache.paimon.utils.*;

/**
 * Wrote paths.txt with Paimon's own classes (paimon-bundle 1.4.2, UTC): column type, partition row in
 * hex, directory with partition.legacy-name=true, the same with false; separated by tabs.
 */
public class JavaPaths {
  static String dir(RowType rt, InternalRow r, boolean legacy) {
    return PartitionPathUtils.generatePartitionPath(
        new InternalRowPartitionComputer("__DEFAULT_PARTITION__", rt, new String[] {"p"}, legacy).generatePartValues(r));
  }

  static void p(DataType t, Object... vs) {
    RowType rt = new RowType(List.of(new DataField(0, "p", t)));
    for (Object v : vs) {
      BinaryRow r = new InternalRowSerializer(rt).toBinaryRow(GenericRow.of(v)).copy();
      StringBuilder hex = new StringBuilder();
      for (byte b : SerializationUtils.serializeBinaryRow(r)) hex.append(String.format("%02x", b));
      System.out.println(t.asSQLString() + "\t" + hex + "\t" + dir(rt, r, true) + "\t" + dir(rt, r, false));
    }
  }

  public static void main(String[] a) {
    p(DataTypes.BOOLEAN(), true, false, null);
    p(DataTypes.TINYINT(), (byte) -5);
    p(DataTypes.SMALLINT(), (short) 300);
    p(DataTypes.INT(), 0, -1, Integer.MIN_VALUE, null);
    p(DataTypes.BIGINT(), Long.MAX_VALUE, Long.MIN_VALUE);
    p(DataTypes.DATE(), 0, -1, 20454, -719162, 2932896, 2932897, -719529, -1000000);
    for (int n : new int[] {0, 1, 3, 6, 9}) p(DataTypes.TIME(n), 0, 3723000, 3723004, 3723120, 86399999);
    for (String s : new String[] {"", " ", "   ", "\t", "\u00a0", "\u2003", "\u001c", "a b/c=d%e", "ünïcödé", "__DEFAULT_PARTITION__", "a\"#%'*/:=?\\{}[]^z",
        "~!@$&()+,;<>|`-_.", "\u0001\u001f\u007f\u0080", "日本😀", ".", "..", "a=b", "%41", "A%", " x "}) p(DataTypes.STRING(), BinaryString.fromString(s));
    p(DataTypes.CHAR(5), BinaryString.fromString("ab   "), BinaryString.fromString("     "));
    for (String s : new String[] {"12.5", "0", "-0.01", "99999999.99"}) p(DataTypes.DECIMAL(10, 2), Decimal.fromBigDecimal(new BigDecimal(s), 10, 2));
    for (String s : new String[] {"1", "-0.000000000000000001"}) p(DataTypes.DECIMAL(38, 18), Decimal.fromBigDecimal(new BigDecimal(s), 38, 18));
    p(DataTypes.DECIMAL(20, 0), Decimal.fromBigDecimal(new BigDecimal("12345678901234567890"), 20, 0));
    p(DataTypes.FLOAT(), 0f, -0f, 1.5f, 1e7f, 9999999f, 1e-3f, 9.99e-4f, 3.4028235e38f, 1.17549435e-38f, Float.NaN, Float.POSITIVE_INFINITY, 16777216f, 0.1f, 1.0e10f, 100f);
    p(DataTypes.DOUBLE(), 0.0, -0.0, 1.5, 1e7, 9999999.0, 12345678.9, 1e-3, 9.99e-4, 1e20, 1.0E10, Double.MAX_VALUE, Double.NaN, Double.NEGATIVE_INFINITY, 0.1, 1.0 / 3, 100.0, 123456.789, 1.0E-5);
    long[] ms = {0, 1767225600000L, 1767225600123L, 1767225660000L, 1767225605000L, -1, -62135596800000L, 253402300800000L, -62198755200000L, -62167219200001L};
    for (int n : new int[] {0, 3, 6, 9}) for (boolean ltz : new boolean[] {false, true}) {
      DataType t = ltz ? DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(n) : DataTypes.TIMESTAMP(n);
      for (long m : ms) p(t, Timestamp.fromEpochMillis(n == 0 ? Math.floorDiv(m, 1000L) * 1000 : m));
      if (n > 3) p(t, Timestamp.fromEpochMillis(5, 456000), Timestamp.fromEpochMillis(1767225600120L), Timestamp.fromEpochMillis(-1, 999000));
      if (n > 6) p(t, Timestamp.fromEpochMillis(5, 7), Timestamp.fromEpochMillis(5, 999999));
    }
  }
}
