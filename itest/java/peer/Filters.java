package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.RowType;
import wire.Args;

/** The "where" of a request, a list of {column, op, value | values} joined by AND, as Paimon's predicate. */
final class Filters {
  private Filters() {}

  /** Returns null when the request has no condition. */
  static Predicate where(Args a, RowType t) {
    List<Predicate> all = new ArrayList<>();
    PredicateBuilder b = new PredicateBuilder(t);
    for (Object o : a.list("where")) all.add(one(Args.of(o), t, b));
    return all.isEmpty() ? null : PredicateBuilder.and(all);
  }

  /** The columns that the conditions name, in table order. */
  static int[] columns(Args a, RowType t) {
    return a.list("where").stream().mapToInt(o -> t.getFieldIndex(Args.of(o).str("column"))).distinct().sorted().toArray();
  }

  private static Predicate one(Args c, RowType t, PredicateBuilder b) {
    int i = t.getFieldIndex(c.str("column"));
    if (i < 0) throw new IllegalArgumentException("no column " + c.str("column"));
    DataType type = t.getTypeAt(i);
    List<Object> values = new ArrayList<>();
    for (Object v : c.list("values")) values.add(Values.value(v, type));
    Object v = c.has("value") ? Values.value(c.get("value"), type) : null;
    return switch (c.str("op").toLowerCase(Locale.ROOT)) {
      case "=" -> b.equal(i, v);
      case "!=", "<>" -> b.notEqual(i, v);
      case "<" -> b.lessThan(i, v);
      case "<=" -> b.lessOrEqual(i, v);
      case ">" -> b.greaterThan(i, v);
      case ">=" -> b.greaterOrEqual(i, v);
      case "is null" -> b.isNull(i);
      case "is not null" -> b.isNotNull(i);
      case "in" -> b.in(i, values);
      case "not in" -> b.notIn(i, values);
      case "between" -> b.between(i, values.get(0), values.get(1));
      case "starts with" -> b.startsWith(i, v);
      default -> throw new IllegalArgumentException("unknown operator " + c.str("op"));
    };
  }
}
