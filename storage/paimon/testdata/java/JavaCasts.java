import java.math.BigDecimal;
import java.util.*;
import org.apache.paimon.casting.*;
import org.apache.paimon.data.*;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.types.*;
import org.apache.paimon.utils.*;

/**
 * Wrote casts.txt with Paimon's own classes (cast rules of commit 5dacde516b on paimon-bundle 1.4.2,
 * UTC): old and new column type, value under the old one and as read under the new one, both as rows
 * in hex; NONE where Java has no cast, ERR where it fails. Separated by tabs. Only casts within
 * numbers, text, binary, times and timestamps.
 */
public class JavaCasts {
  static String hex(DataType t, Object v) {
    RowType rt = new RowType(List.of(new DataField(0, "p", t)));
    BinaryRow r = new InternalRowSerializer(rt).toBinaryRow(GenericRow.of(v)).copy();
    StringBuilder b = new StringBuilder();
    for (byte x : SerializationUtils.serializeBinaryRow(r)) b.append(String.format("%02x", x));
    return b.toString();
  }

  static Object[] values(DataType t) {
    switch (t.getTypeRoot()) {
      case BOOLEAN: return new Object[] {true, false};
      case TINYINT: return new Object[] {Byte.MIN_VALUE, Byte.MAX_VALUE, (byte) -1};
      case SMALLINT: return new Object[] {Short.MIN_VALUE, Short.MAX_VALUE, (short) 300};
      case INTEGER: return new Object[] {Integer.MIN_VALUE, Integer.MAX_VALUE, 16777217};
      case BIGINT: return new Object[] {Long.MIN_VALUE, Long.MAX_VALUE, (1L << 53) + 1};
      case FLOAT: return new Object[] {1.1f, -0f, Float.MAX_VALUE, Float.MIN_VALUE, Float.NaN, Float.NEGATIVE_INFINITY};
      case DOUBLE: return new Object[] {1.1, -0.0, Double.MAX_VALUE, Double.NaN};
      case DECIMAL: {
        DecimalType d = (DecimalType) t;
        List<Object> out = new ArrayList<>();
        BigDecimal most = BigDecimal.TEN.pow(d.getPrecision()).subtract(BigDecimal.ONE).movePointLeft(d.getScale());
        for (BigDecimal b : new BigDecimal[] {most, most.negate(), BigDecimal.ONE.movePointLeft(d.getScale()), BigDecimal.ZERO}) out.add(Decimal.fromBigDecimal(b, d.getPrecision(), d.getScale()));
        return out.toArray();
      }
      case CHAR: {
        int n = ((CharType) t).getLength();
        return new Object[] {BinaryString.fromString(BinaryStringUtils.toCharacterString(BinaryString.fromString("é"), t).toString()), BinaryString.blankString(n)};
      }
      case VARCHAR: return new Object[] {BinaryString.fromString("é日"), BinaryString.fromString(""), BinaryString.fromString("a ")};
      case BINARY: return new Object[] {new byte[((BinaryType) t).getLength()], Arrays.copyOf(new byte[] {1}, ((BinaryType) t).getLength())};
      case VARBINARY: return new Object[] {new byte[] {}, new byte[] {0, (byte) 255}};
      case DATE: return new Object[] {0, -1, 20454};
      case TIME_WITHOUT_TIME_ZONE: return new Object[] {0, 86399999};
      default: {
        int p = DataTypeChecks.getPrecision(t);
        if (p <= 3) return new Object[] {Timestamp.fromEpochMillis(1767225600000L), Timestamp.fromEpochMillis(-1000)};
        return new Object[] {Timestamp.fromEpochMillis(1767225600123L, 456000), Timestamp.fromEpochMillis(-1, p > 6 ? 999999 : 999000)};
      }
    }
  }

  static int family(DataType t) {
    if (t.is(DataTypeFamily.NUMERIC)) return 1;
    if (t.is(DataTypeFamily.CHARACTER_STRING)) return 2;
    if (t.is(DataTypeFamily.BINARY_STRING)) return 3;
    if (t.is(DataTypeFamily.TIMESTAMP)) return 4;
    return t.is(DataTypeFamily.TIME) ? 5 : 0;
  }

  @SuppressWarnings("unchecked")
  public static void main(String[] a) {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    List<DataType> ts = new ArrayList<>(List.of(DataTypes.BOOLEAN(), DataTypes.TINYINT(), DataTypes.SMALLINT(), DataTypes.INT(), DataTypes.BIGINT(), DataTypes.FLOAT(), DataTypes.DOUBLE(),
        DataTypes.DECIMAL(3, 0), DataTypes.DECIMAL(9, 2), DataTypes.DECIMAL(10, 2), DataTypes.DECIMAL(12, 2), DataTypes.DECIMAL(18, 4), DataTypes.DECIMAL(19, 0), DataTypes.DECIMAL(20, 2), DataTypes.DECIMAL(38, 18), DataTypes.DECIMAL(38, 0), DataTypes.DECIMAL(38, 38),
        DataTypes.CHAR(2), DataTypes.CHAR(5), DataTypes.VARCHAR(2), DataTypes.VARCHAR(5), DataTypes.STRING(), DataTypes.BINARY(2), DataTypes.BINARY(5), DataTypes.VARBINARY(2), DataTypes.VARBINARY(5), DataTypes.BYTES(),
        DataTypes.DATE(), DataTypes.TIME(0), DataTypes.TIME(3)));
    for (int n : new int[] {0, 3, 6, 9}) { ts.add(DataTypes.TIMESTAMP(n)); ts.add(DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(n)); }
    for (DataType from : ts) for (DataType to : ts) {
      if (from.equals(to) || family(from) == 0 || family(from) != family(to)) continue;
      CastExecutor<Object, Object> c = (CastExecutor<Object, Object>) CastExecutors.resolve(from, to);
      for (Object v : values(from)) {
        String out;
        try {
          out = c == null ? "NONE" : hex(to, c.cast(v));
        } catch (Exception e) {
          out = "ERR";
        }
        System.out.println(from.asSQLString() + "\t" + to.asSQLString() + "\t" + hex(from, v) + "\t" + out);
      }
    }
  }
}
