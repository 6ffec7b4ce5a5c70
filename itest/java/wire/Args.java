package wire;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The arguments of one request, with typed access and errors that name the argument. */
public record Args(Map<String, Object> map) {
  public boolean has(String k) {
    return map.get(k) != null;
  }

  public Object get(String k) {
    return map.get(k);
  }

  private Object need(String k) {
    Object v = map.get(k);
    if (v == null) throw new IllegalArgumentException("argument '" + k + "' is missing");
    return v;
  }

  public String str(String k) {
    return need(k).toString();
  }

  public String str(String k, String otherwise) {
    return has(k) ? str(k) : otherwise;
  }

  public long num(String k) {
    return Long.parseLong(need(k).toString());
  }

  public long num(String k, long otherwise) {
    return has(k) ? num(k) : otherwise;
  }

  public boolean bool(String k, boolean otherwise) {
    return has(k) ? Boolean.parseBoolean(map.get(k).toString()) : otherwise;
  }

  /** The list under k; absent is empty. */
  @SuppressWarnings("unchecked")
  public List<Object> list(String k) {
    return has(k) ? (List<Object>) map.get(k) : List.of();
  }

  public List<String> strings(String k) {
    List<String> out = new ArrayList<>();
    for (Object o : list(k)) out.add(o.toString());
    return out;
  }

  /** The texts of the object under k; absent is empty. */
  public Map<String, String> texts(String k) {
    Map<String, String> out = new LinkedHashMap<>();
    if (has(k)) ((Map<?, ?>) map.get(k)).forEach((n, v) -> out.put(n.toString(), v == null ? null : v.toString()));
    return out;
  }

  /** One element of a list, seen as arguments. */
  @SuppressWarnings("unchecked")
  public static Args of(Object o) {
    return new Args((Map<String, Object>) o);
  }
}
