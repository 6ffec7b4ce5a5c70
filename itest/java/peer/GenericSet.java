package peer;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.types.RowType;
import wire.Args;

/** The assignments of an update: a new version of a row with some columns set to constants. */
record GenericSet(RowType type, Map<Integer, Object> values) {
  static GenericSet of(Args a, RowType t) {
    Map<Integer, Object> values = new LinkedHashMap<>();
    ((Map<?, ?>) a.get("set")).forEach((name, v) -> {
      int i = t.getFieldIndex(name.toString());
      if (i < 0) throw new IllegalArgumentException("no column " + name);
      values.put(i, Values.value(v, t.getTypeAt(i)));
    });
    return new GenericSet(t, values);
  }

  GenericRow apply(InternalRow old) {
    GenericRow r = new GenericRow(type.getFieldCount());
    for (int i = 0; i < type.getFieldCount(); i++) {
      r.setField(i, values.containsKey(i) ? values.get(i) : InternalRow.createFieldGetter(type.getTypeAt(i), i).getFieldOrNull(old));
    }
    return r;
  }
}
