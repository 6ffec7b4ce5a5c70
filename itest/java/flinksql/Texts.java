package flinksql;

import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeFamily;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.utils.LogicalTypeChecks;
import org.apache.flink.types.Row;
import wire.Text;

/** Flink's result rows as the JSON texts of {@code applier cat --format jsonl}. */
final class Texts {
  private Texts() {}

  static void row(Text o, Row r, List<String> names, List<LogicalType> types) {
    o.put('{');
    for (int i = 0; i < names.size(); i++) {
      if (i > 0) o.put(',');
      o.string(names.get(i));
      o.put(':');
      value(o, r.getField(i), types.get(i));
    }
    o.put('}');
  }

  static void value(Text o, Object v, LogicalType t) {
    if (v == null) {
      o.ascii("null");
      return;
    }
    switch (t.getTypeRoot()) {
      case BOOLEAN -> o.ascii(v.toString());
      case TINYINT, SMALLINT, INTEGER, BIGINT -> o.num(((Number) v).longValue());
      case FLOAT -> o.flt((Float) v);
      case DOUBLE -> o.dbl((Double) v);
      case CHAR, VARCHAR -> o.string(((String) v).getBytes(StandardCharsets.UTF_8));
      case BINARY, VARBINARY -> o.hex((byte[]) v);
      case DECIMAL -> o.put('"').ascii(((BigDecimal) v).setScale(((DecimalType) t).getScale()).toPlainString()).put('"');
      case DATE -> o.date(((LocalDate) v).toEpochDay());
      case TIME_WITHOUT_TIME_ZONE -> o.time(((LocalTime) v).toNanoOfDay(), LogicalTypeChecks.getPrecision(t));
      case TIMESTAMP_WITHOUT_TIME_ZONE -> stamp(o, ((LocalDateTime) v).toInstant(ZoneOffset.UTC), t, false);
      case TIMESTAMP_WITH_LOCAL_TIME_ZONE -> stamp(o, (Instant) v, t, true);
      case ARRAY -> {
        o.put('[');
        for (int i = 0; i < Array.getLength(v); i++) {
          if (i > 0) o.put(',');
          value(o, Array.get(v, i), ((ArrayType) t).getElementType());
        }
        o.put(']');
      }
      case MAP -> map(o, (Map<?, ?>) v, ((MapType) t).getKeyType(), ((MapType) t).getValueType());
      case MULTISET -> map(o, (Map<?, ?>) v, ((MultisetType) t).getElementType(), new IntType());
      case ROW -> row(o, (Row) v, ((RowType) t).getFieldNames(), t.getChildren());
      case NULL -> o.ascii("null");
      default -> throw new UnsupportedOperationException("no text for the type " + t.asSummaryString());
    }
  }

  private static void stamp(Text o, Instant i, LogicalType t, boolean utc) {
    long millis = i.getEpochSecond() * 1000 + i.getNano() / 1_000_000;
    o.timestamp(millis, i.getNano() % 1_000_000, LogicalTypeChecks.getPrecision(t), utc);
  }

  /** Flink hands maps over without their stored order. */
  private static void map(Text o, Map<?, ?> m, LogicalType key, LogicalType value) {
    boolean text = key.is(LogicalTypeFamily.CHARACTER_STRING);
    o.put(text ? '{' : '[');
    String sep = "";
    for (Map.Entry<?, ?> e : m.entrySet()) {
      o.ascii(sep);
      if (!text) o.put('[');
      value(o, e.getKey(), key);
      o.put(text ? ':' : ',');
      value(o, e.getValue(), value);
      if (!text) o.put(']');
      sep = ",";
    }
    o.put(text ? '}' : ']');
  }
}
