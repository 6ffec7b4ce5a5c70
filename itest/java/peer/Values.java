package peer;

import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.IntType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/** JSON values in the texts of Rows as Paimon's internal objects. */
final class Values {
  private Values() {}

  /** A row from an object; a column that is absent is NULL (the writer then applies its default). */
  static GenericRow row(Object json, RowType t) {
    if (!(json instanceof Map<?, ?> m)) throw new IllegalArgumentException("a row is a JSON object, not " + json);
    for (Object name : m.keySet()) {
      if (!t.containsField(name.toString())) throw new IllegalArgumentException("no column " + name);
    }
    GenericRow r = new GenericRow(t.getFieldCount());
    int i = 0;
    for (DataField f : t.getFields()) {
      try {
        r.setField(i++, value(m.get(f.name()), f.type()));
      } catch (RuntimeException e) {
        throw new IllegalArgumentException("column " + f.name() + " " + f.type().asSQLString() + ": " + m.get(f.name()), e);
      }
    }
    return r;
  }

  static Object value(Object v, DataType t) {
    if (v == null) return null;
    String s = v.toString();
    return switch (t.getTypeRoot()) {
      case BOOLEAN -> Boolean.valueOf(s);
      case TINYINT -> Byte.valueOf(s);
      case SMALLINT -> Short.valueOf(s);
      case INTEGER -> Integer.valueOf(s);
      case BIGINT -> Long.valueOf(s);
      case FLOAT -> Float.valueOf(s);
      case DOUBLE -> Double.valueOf(s);
      case CHAR, VARCHAR -> BinaryString.fromString(s);
      case BINARY, VARBINARY -> HexFormat.of().parseHex(s);
      case DECIMAL -> decimal(s, (DecimalType) t);
      case DATE -> Math.toIntExact(LocalDate.parse(s).toEpochDay());
      case TIME_WITHOUT_TIME_ZONE -> (int) (LocalTime.parse(s).toNanoOfDay() / 1_000_000);
      case TIMESTAMP_WITHOUT_TIME_ZONE, TIMESTAMP_WITH_LOCAL_TIME_ZONE -> timestamp(s);
      case ARRAY -> array((List<?>) v, ((ArrayType) t).getElementType());
      case MAP -> map(v, ((MapType) t).getKeyType(), ((MapType) t).getValueType());
      case MULTISET -> map(v, ((MultisetType) t).getElementType(), new IntType());
      case ROW -> row(v, (RowType) t);
      case VARIANT -> variant((Map<?, ?>) v);
      default -> throw new UnsupportedOperationException("no value of the type " + t.asSQLString());
    };
  }

  /** A variant is given as it is stored. */
  private static GenericVariant variant(Map<?, ?> m) {
    return new GenericVariant(HexFormat.of().parseHex(m.get("value").toString()), HexFormat.of().parseHex(m.get("metadata").toString()));
  }

  private static Decimal decimal(String s, DecimalType t) {
    Decimal d = Decimal.fromBigDecimal(new BigDecimal(s), t.getPrecision(), t.getScale());
    if (d == null) throw new ArithmeticException(s + " does not fit");
    return d;
  }

  /** The text is in UTC for both kinds of timestamps; LocalDateTime keeps nanoseconds. */
  private static Timestamp timestamp(String s) {
    String plain = s.endsWith("Z") ? s.substring(0, s.length() - 1) : s;
    return Timestamp.fromLocalDateTime(LocalDateTime.parse(plain.replace(' ', 'T')));
  }

  private static GenericArray array(List<?> l, DataType element) {
    Object[] out = new Object[l.size()];
    for (int i = 0; i < out.length; i++) out[i] = value(l.get(i), element);
    return new GenericArray(out);
  }

  private static GenericMap map(Object v, DataType key, DataType value) {
    Map<Object, Object> out = new LinkedHashMap<>();
    if (v instanceof Map<?, ?> m) {
      m.forEach((k, x) -> out.put(value(k, key), value(x, value)));
    } else {
      for (Object pair : (List<?>) v) {
        List<?> p = (List<?>) pair;
        out.put(value(p.get(0), key), value(p.get(1), value));
      }
    }
    return new GenericMap(out);
  }
}
