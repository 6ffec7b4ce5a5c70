import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.paimon.data.*;
import org.apache.paimon.types.*;
import org.apache.paimon.utils.*;

/**
 * Wrote nesteddefaults.txt with the converter of column defaults of paimon-bundle 1.4.2
 * (DefaultValueUtils and the cast rules): column type, default text as a Go string literal, value;
 * separated by tabs. Values: ERR, NULL, numbers as they are, texts in hex, arrays in brackets, rows in
 * parentheses, maps in braces with their entries sorted; parts end with a semicolon.
 */
public class JavaNestedDefaults {
  static String quote(String s) {
    StringBuilder b = new StringBuilder("\"");
    for (int c : s.codePoints().toArray()) {
      if (c >= ' ' && c < 127 && c != '"' && c != '\\') b.append((char) c);
      else b.append(String.format("\\U%08x", c));
    }
    return b.append('"').toString();
  }

  static String value(DataType t, Object o) {
    if (o == null) return "NULL";
    StringBuilder b = new StringBuilder();
    if (t instanceof ArrayType) {
      InternalArray a = (InternalArray) o;
      DataType e = ((ArrayType) t).getElementType();
      InternalArray.ElementGetter g = InternalArray.createElementGetter(e);
      for (int i = 0; i < a.size(); i++) b.append(value(e, g.getElementOrNull(a, i))).append(';');
      return "[" + b + "]";
    }
    if (t instanceof RowType) {
      InternalRow r = (InternalRow) o;
      RowType rt = (RowType) t;
      for (int i = 0; i < rt.getFieldCount(); i++) {
        b.append(value(rt.getTypeAt(i), InternalRow.createFieldGetter(rt.getTypeAt(i), i).getFieldOrNull(r))).append(';');
      }
      return "(" + b + ")";
    }
    if (t instanceof MapType) {
      InternalMap m = (InternalMap) o;
      DataType k = ((MapType) t).getKeyType(), v = ((MapType) t).getValueType();
      InternalArray.ElementGetter kg = InternalArray.createElementGetter(k), vg = InternalArray.createElementGetter(v);
      List<String> entries = new ArrayList<>();
      for (int i = 0; i < m.size(); i++) {
        entries.add(value(k, kg.getElementOrNull(m.keyArray(), i)) + "=" + value(v, vg.getElementOrNull(m.valueArray(), i)) + ";");
      }
      Collections.sort(entries);
      for (String e : entries) b.append(e);
      return "{" + b + "}";
    }
    if (o instanceof Decimal) return ((Decimal) o).toBigDecimal().unscaledValue().toString();
    if (o instanceof BinaryString) {
      b.append('x');
      for (byte x : ((BinaryString) o).toBytes()) b.append(String.format("%02x", x));
      return b.toString();
    }
    return o.toString();
  }

  static void p(DataType t, String s) {
    String v;
    try {
      v = value(t, DefaultValueUtils.convertDefaultValue(t, s));
    } catch (Exception e) {
      v = "ERR";
    }
    System.out.println(t.asSQLString() + "\t" + quote(s) + "\t" + v);
  }

  static final String[] TOKENS = {
    "a", "b", "1", "2", "12", "null", "NULL", "true", ",", ",", ",", ", ", " ", "\"", "'", "\\", "->", " -> ", "=", "\u00e9", "\t", "\n", ".5"
  };

  /** A text that looks like a value of the type, with accidents. */
  static String text(Random r, DataType t, int depth) {
    if (r.nextInt(12) == 0) return noise(r);
    boolean call = r.nextBoolean();
    StringBuilder b = new StringBuilder();
    int n = r.nextInt(4);
    String sep = r.nextInt(4) == 0 ? "," : ", ";
    if (t instanceof ArrayType) {
      for (int i = 0; i < n; i++) b.append(i == 0 ? "" : sep).append(text(r, ((ArrayType) t).getElementType(), depth + 1));
      return call ? pick(r, "ARRAY", "array", "Array ") + "(" + b + ")" : "[" + b + "]";
    }
    if (t instanceof RowType) {
      List<DataType> f = ((RowType) t).getFieldTypes();
      for (int i = 0; i < f.size(); i++) b.append(i == 0 ? "" : sep).append(text(r, f.get(i), depth + 1));
      return call ? pick(r, "STRUCT", "struct", "STRUCT\t") + "(" + b + ")" : "{" + b + "}";
    }
    if (t instanceof MapType) {
      DataType k = ((MapType) t).getKeyType(), v = ((MapType) t).getValueType();
      for (int i = 0; i < n; i++) {
        b.append(i == 0 ? "" : sep).append(text(r, k, depth + 1)).append(call ? sep : pick(r, " -> ", "->", "  -> ")).append(text(r, v, depth + 1));
      }
      return call ? pick(r, "MAP", "map", "Map  ") + "(" + b + ")" : "{" + b + "}";
    }
    String[] words = t.is(DataTypeRoot.INTEGER)
        ? new String[] {"0", "1", "-7", "12", "2.9", "null", "NULL", "", " ", "99999999999", "+3"}
        : new String[] {"a", "b", "", " ", "null", "NULL", "it's", "a b", "\"a, b\"", "\"q\"", "'a'", "(", "[x", "]", "a\\,b", "x\\\"y", "\"\"", "\u4e2d", "a -> b", "k"};
    String w = words[r.nextInt(words.length)];
    return r.nextInt(8) == 0 ? " " + w + "\t" : r.nextInt(5) == 0 ? "\"" + w + "\"" : w;
  }

  static String noise(Random r) {
    StringBuilder b = new StringBuilder();
    for (int n = r.nextInt(5); n > 0; n--) b.append(TOKENS[r.nextInt(TOKENS.length)]);
    return b.toString();
  }

  static String pick(Random r, String... s) { return s[r.nextInt(s.length)]; }

  public static void main(String[] args) {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    DataType s = DataTypes.STRING(), n = DataTypes.INT();
    DataType row = DataTypes.ROW(DataTypes.FIELD(0, "f0", n), DataTypes.FIELD(1, "f1", s));
    DataType[] types = {
      DataTypes.ARRAY(n), DataTypes.ARRAY(s), DataTypes.MAP(n, n), DataTypes.MAP(s, s), DataTypes.MAP(s, n), row, DataTypes.ARRAY(row),
      DataTypes.ARRAY(DataTypes.ARRAY(s)), DataTypes.MAP(s, DataTypes.ARRAY(n)), DataTypes.MAP(s, row), DataTypes.ARRAY(DataTypes.MAP(s, s)),
      DataTypes.ROW(DataTypes.FIELD(0, "f0", s), DataTypes.FIELD(1, "f1", DataTypes.ARRAY(s)), DataTypes.FIELD(2, "f2", DataTypes.MAP(n, s))),
      DataTypes.ARRAY(DataTypes.DECIMAL(5, 2)), DataTypes.ARRAY(DataTypes.DATE()), DataTypes.ARRAY(DataTypes.BOOLEAN()), DataTypes.ARRAY(DataTypes.CHAR(2))
    };
    Random r = new Random(1);
    for (DataType t : types) {
      for (int i = 0; i < 260; i++) {
        String x = text(r, t, 0);
        if (r.nextInt(9) == 0) x = "'" + x + "'";
        if (r.nextInt(9) == 0) x = " " + x + "\t";
        p(t, x);
      }
      for (String x : new String[] {"", "NULL", "null", "[]", "{}", "ARRAY()", "array( )", "MAP()", "map( )", "STRUCT()", "struct( )", "()", "[", "{", "[]]", "[1, 2]", "{1, 2}", "{1 -> 2}", "MAP(1, 2)", "MAP(1, null)", "MAP(1, 2, 1, 3)", "{1 -> 2, 1 -> 3}", "[1\n]", "ARRAY(1, 2)\n"}) p(t, x);
    }
  }
}
