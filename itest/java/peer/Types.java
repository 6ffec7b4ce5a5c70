package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;

/**
 * Type texts: Paimon's own parser for the scalar ones, and ARRAY&lt;…&gt;, MAP&lt;…, …&gt;, MULTISET&lt;…&gt;,
 * ROW&lt;name type, …&gt; around them. Nested fields are numbered by the catalog when the table is created.
 */
final class Types {
  private static final AtomicInteger FIELD_IDS = new AtomicInteger(1000);

  private Types() {}

  static DataType parse(String text) {
    String s = text.trim();
    boolean notNull = s.toUpperCase(Locale.ROOT).endsWith(" NOT NULL");
    String body = notNull ? s.substring(0, s.length() - " NOT NULL".length()).trim() : s;
    int open = body.indexOf('<');
    DataType t = open < 0 ? DataTypeJsonParser.parseAtomicTypeSQLString(body) : nested(body, open);
    return t.copy(!notNull);
  }

  private static DataType nested(String body, int open) {
    if (!body.endsWith(">")) throw new IllegalArgumentException("type " + body + ": '>' is expected at its end");
    List<String> parts = split(body.substring(open + 1, body.length() - 1));
    return switch (body.substring(0, open).trim().toUpperCase(Locale.ROOT)) {
      case "ARRAY" -> new ArrayType(parse(parts.get(0)));
      case "MULTISET" -> new MultisetType(parse(parts.get(0)));
      case "MAP" -> new MapType(parse(parts.get(0)), parse(parts.get(1)));
      case "ROW" -> row(parts);
      default -> throw new IllegalArgumentException("type " + body + ": no such nested type");
    };
  }

  private static RowType row(List<String> parts) {
    List<DataField> fields = new ArrayList<>();
    for (String p : parts) {
      String f = p.trim();
      int end = f.startsWith("`") ? f.indexOf('`', 1) + 1 : f.indexOf(' ');
      String name = f.substring(0, end).replace("`", "");
      fields.add(new DataField(FIELD_IDS.getAndIncrement(), name, parse(f.substring(end))));
    }
    return new RowType(fields);
  }

  /** Splits at the commas that are outside all brackets. */
  private static List<String> split(String s) {
    List<String> out = new ArrayList<>();
    int depth = 0;
    int from = 0;
    for (int i = 0; i < s.length(); i++) {
      char c = s.charAt(i);
      if (c == '<' || c == '(') depth++;
      if (c == '>' || c == ')') depth--;
      if (c == ',' && depth == 0) {
        out.add(s.substring(from, i));
        from = i + 1;
      }
    }
    out.add(s.substring(from));
    return out;
  }
}
