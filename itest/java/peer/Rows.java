package peer;

import java.util.IdentityHashMap;
import java.util.Map;
import org.apache.paimon.data.DataGetters;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.variant.Variant;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeChecks;
import org.apache.paimon.types.DataTypeFamily;
import org.apache.paimon.types.DataTypeRoot;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.IntType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;
import wire.Text;

/**
 * Paimon's internal rows as the JSON texts of {@code applier cat --format jsonl}. An instance keeps the
 * texts of column names; it belongs to one thread.
 */
final class Rows {
  private static final int NANOS_PER_MILLI = 1_000_000;

  /** One member of an object: {@code ,"name":} and its value. */
  private record Member(byte[] head, int column, DataType type) {}

  private final Map<RowType, Member[]> nested = new IdentityHashMap<>();
  private final Member[] top;

  /** For objects with the given columns of a row, in that order. */
  Rows(RowType t, int[] columns) {
    this.top = members(t, columns);
  }

  private static Member[] members(RowType t, int[] columns) {
    Member[] out = new Member[columns.length];
    for (int i = 0; i < out.length; i++) {
      Text head = new Text();
      if (i > 0) head.put(',');
      head.string(t.getFieldNames().get(columns[i]));
      out[i] = new Member(head.put(':').toBytes(), columns[i], t.getTypeAt(columns[i]));
    }
    return out;
  }

  void row(Text o, InternalRow r) {
    object(o, r, top);
  }

  private void object(Text o, InternalRow r, Member[] members) {
    o.put('{');
    for (Member m : members) {
      o.bytes(m.head);
      value(o, r, m.column, m.type);
    }
    o.put('}');
  }

  private void value(Text o, DataGetters g, int i, DataType t) {
    if (g.isNullAt(i)) {
      o.ascii("null");
      return;
    }
    switch (t.getTypeRoot()) {
      case BOOLEAN -> o.ascii(g.getBoolean(i) ? "true" : "false");
      case TINYINT -> o.num(g.getByte(i));
      case SMALLINT -> o.num(g.getShort(i));
      case INTEGER -> o.num(g.getInt(i));
      case BIGINT -> o.num(g.getLong(i));
      case FLOAT -> o.flt(g.getFloat(i));
      case DOUBLE -> o.dbl(g.getDouble(i));
      case CHAR, VARCHAR -> o.string(g.getString(i).toBytes());
      case BINARY, VARBINARY -> o.hex(g.getBinary(i));
      case DECIMAL -> decimal(o, g, i, (DecimalType) t);
      case DATE -> o.date(g.getInt(i));
      case TIME_WITHOUT_TIME_ZONE -> o.time((long) g.getInt(i) * NANOS_PER_MILLI, DataTypeChecks.getPrecision(t));
      case TIMESTAMP_WITHOUT_TIME_ZONE, TIMESTAMP_WITH_LOCAL_TIME_ZONE -> {
        int p = DataTypeChecks.getPrecision(t);
        Timestamp ts = g.getTimestamp(i, p);
        boolean utc = t.getTypeRoot() == DataTypeRoot.TIMESTAMP_WITH_LOCAL_TIME_ZONE;
        o.timestamp(ts.getMillisecond(), ts.getNanoOfMillisecond(), p, utc);
      }
      case ARRAY -> array(o, g.getArray(i), ((ArrayType) t).getElementType());
      case MAP -> map(o, g.getMap(i), ((MapType) t).getKeyType(), ((MapType) t).getValueType());
      case MULTISET -> map(o, g.getMap(i), ((MultisetType) t).getElementType(), new IntType());
      case ROW -> {
        RowType rt = (RowType) t;
        object(o, g.getRow(i, rt.getFieldCount()), nested.computeIfAbsent(rt, x -> members(x, all(x))));
      }
      case VARIANT -> {
        Variant x = g.getVariant(i);
        o.ascii("{\"value\":");
        o.hex(x.value());
        o.ascii(",\"metadata\":");
        o.hex(x.metadata());
        o.put('}');
      }
      default -> throw new UnsupportedOperationException("no text for the type " + t.asSQLString());
    }
  }

  static int[] all(RowType t) {
    int[] all = new int[t.getFieldCount()];
    for (int i = 0; i < all.length; i++) all[i] = i;
    return all;
  }

  private static void decimal(Text o, DataGetters g, int i, DecimalType t) {
    Decimal d = g.getDecimal(i, t.getPrecision(), t.getScale());
    o.put('"');
    if (d.isCompact()) o.decimal(d.toUnscaledLong(), t.getScale());
    else o.ascii(d.toBigDecimal().toPlainString());
    o.put('"');
  }

  private void array(Text o, InternalArray a, DataType element) {
    o.put('[');
    for (int i = 0; i < a.size(); i++) {
      if (i > 0) o.put(',');
      value(o, a, i, element);
    }
    o.put(']');
  }

  /** Text keys make an object, others an array of pairs; entries keep their stored order. */
  private void map(Text o, InternalMap m, DataType key, DataType value) {
    boolean text = key.is(DataTypeFamily.CHARACTER_STRING);
    InternalArray keys = m.keyArray();
    InternalArray values = m.valueArray();
    o.put(text ? '{' : '[');
    for (int i = 0; i < m.size(); i++) {
      if (i > 0) o.put(',');
      if (!text) o.put('[');
      value(o, keys, i, key);
      o.put(text ? ':' : ',');
      value(o, values, i, value);
      if (!text) o.put(']');
    }
    o.put(text ? '}' : ']');
  }
}
