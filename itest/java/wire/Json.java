package wire;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON without loss: numbers keep their text, objects their order. A document is Map, List, String,
 * Boolean, Num or null; writing also takes Java numbers and Raw text.
 */
public final class Json {
  /** A number exactly as it was written (−0, 20 digits, exponents). */
  public record Num(String text) {
    @Override
    public String toString() {
      return text;
    }
  }

  /** Text that already is JSON. */
  public record Raw(String text) {}

  private final String s;
  private int i;

  private Json(String s) {
    this.s = s;
  }

  public static Object parse(String text) {
    Json p = new Json(text);
    Object v = p.value(0);
    p.blank();
    if (p.i < text.length()) throw p.bad("the end");
    return v;
  }

  private IllegalArgumentException bad(String expected) {
    return new IllegalArgumentException("JSON: " + expected + " is expected at character " + i);
  }

  private void blank() {
    while (i < s.length() && s.charAt(i) <= ' ') i++;
  }

  private boolean accept(char c) {
    blank();
    if (i < s.length() && s.charAt(i) == c) {
      i++;
      return true;
    }
    return false;
  }

  private void need(char c) {
    if (!accept(c)) throw bad("'" + c + "'");
  }

  private Object value(int depth) {
    if (depth > 200) throw bad("less nesting");
    blank();
    if (i == s.length()) throw bad("a value");
    switch (s.charAt(i)) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        return word("true", true);
      case 'f':
        return word("false", false);
      case 'n':
        return word("null", null);
      default:
        int from = i;
        while (i < s.length() && "+-.eE0123456789".indexOf(s.charAt(i)) >= 0) i++;
        if (from == i) throw bad("a value");
        return new Num(s.substring(from, i));
    }
  }

  private Object word(String w, Object v) {
    if (!s.startsWith(w, i)) throw bad(w);
    i += w.length();
    return v;
  }

  private Map<String, Object> object(int depth) {
    Map<String, Object> m = new LinkedHashMap<>();
    need('{');
    if (accept('}')) return m;
    do {
      blank();
      String k = string();
      need(':');
      m.put(k, value(depth + 1));
    } while (accept(','));
    need('}');
    return m;
  }

  private List<Object> array(int depth) {
    List<Object> l = new ArrayList<>();
    need('[');
    if (accept(']')) return l;
    do {
      l.add(value(depth + 1));
    } while (accept(','));
    need(']');
    return l;
  }

  private String string() {
    need('"');
    StringBuilder b = new StringBuilder();
    for (; i < s.length(); i++) {
      char c = s.charAt(i);
      if (c == '"') {
        i++;
        return b.toString();
      }
      if (c != '\\') {
        b.append(c);
        continue;
      }
      if (++i == s.length()) break;
      c = s.charAt(i);
      if (c == 'u' && i + 4 < s.length()) {
        b.append((char) Integer.parseInt(s.substring(i + 1, i + 5), 16));
        i += 4;
      } else {
        int at = "\"\\/bfnrt".indexOf(c);
        if (at < 0) throw bad("an escape");
        b.append("\"\\/\b\f\n\r\t".charAt(at));
      }
    }
    throw bad("'\"'");
  }

  /** Writes a document on one line. */
  public static String write(Object v) {
    StringBuilder b = new StringBuilder();
    write(b, v);
    return b.toString();
  }

  private static void write(StringBuilder b, Object v) {
    if (v == null || v instanceof Boolean || v instanceof Num || v instanceof Number) {
      b.append(v);
    } else if (v instanceof Raw r) {
      b.append(r.text);
    } else if (v instanceof Map<?, ?> m) {
      String sep = "{";
      for (Map.Entry<?, ?> e : m.entrySet()) {
        b.append(sep);
        quote(b, e.getKey().toString());
        b.append(':');
        write(b, e.getValue());
        sep = ",";
      }
      b.append(m.isEmpty() ? "{}" : "}");
    } else if (v instanceof Iterable<?> l) {
      b.append('[');
      String sep = "";
      for (Object x : l) {
        b.append(sep);
        write(b, x);
        sep = ",";
      }
      b.append(']');
    } else {
      quote(b, v.toString());
    }
  }

  private static void quote(StringBuilder b, String t) {
    b.append('"');
    for (int i = 0; i < t.length(); i++) {
      char c = t.charAt(i);
      if (c == '"' || c == '\\') b.append('\\').append(c);
      else if (c < 0x20) b.append(String.format("\\u%04x", (int) c));
      else b.append(c);
    }
    b.append('"');
  }
}
