package peer;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.types.RowType;
import wire.Args;
import wire.Text;

/** insert, delete, update, compact, overwrite; in one go, or prepared now and committed later. */
final class Writes {
  private final Warehouse warehouse;
  private final Compactions compactions;
  private final Map<String, Stage> handles = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong();

  Writes(Warehouse warehouse) {
    this.warehouse = warehouse;
    this.compactions = new Compactions(warehouse);
  }

  /** Both phases at once. */
  Map<String, Object> now(String op, Args a) throws Exception {
    return stage(op, a).commit();
  }

  /** First phase: writes the files, keeps the commit messages. */
  Map<String, Object> prepare(Args a) throws Exception {
    Stage s = stage(a.str("op"), a);
    String handle = "h" + next.incrementAndGet();
    handles.put(handle, s);
    Map<String, Object> r = new LinkedHashMap<>(s.facts);
    r.put("handle", handle);
    r.put("empty", s.messages.isEmpty());
    return r;
  }

  /** Second phase. The handle is used up, whatever the outcome, unless "keep" is set. */
  Map<String, Object> commit(Args a) throws Exception {
    Stage s = take(a);
    if (a.bool("keep", false)) handles.put(a.str("handle"), s);
    return s.commit();
  }

  Map<String, Object> abort(Args a) throws Exception {
    take(a).abort();
    return Map.of();
  }

  private Stage take(Args a) {
    Stage s = handles.remove(a.str("handle"));
    if (s == null) throw new IllegalArgumentException("no handle " + a.str("handle"));
    return s;
  }

  private Stage stage(String op, Args a) throws Exception {
    return switch (op) {
      case "insert" -> insert(a);
      case "delete" -> rows(a, null);
      case "update" -> {
        if (!a.has("set")) throw new IllegalArgumentException("argument 'set' is missing");
        yield rows(a, a);
      }
      case "compact" -> compactions.stage(a);
      case "cluster" -> compactions.cluster(a);
      default -> throw new IllegalArgumentException("unknown write " + op);
    };
  }

  /** Appends rows; with "overwrite", a partition spec, replaces what is there. */
  private Stage insert(Args a) throws Exception {
    Stage s = new Stage(warehouse.fileStore(a));
    if (a.has("overwrite")) s.overwrite = a.texts("overwrite");
    RowType type = s.table.rowType();
    try (TableWriteImpl<?> w = writer(s)) {
      for (Object row : a.list("rows")) w.write(Values.row(row, type));
      s.messages.addAll(w.prepareCommit());
    }
    s.facts.put("inserted", a.list("rows").size());
    return s;
  }

  static TableWriteImpl<?> writer(Stage s) {
    return writer(s, Map.of());
  }

  static TableWriteImpl<?> writer(Stage s, Map<String, String> options) {
    TableWriteImpl<?> w = s.table.copy(options).newWrite(s.user).withIgnorePreviousFiles(s.overwrite != null);
    w.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
    return w;
  }

  /** Deletes (set == null) or updates the rows that the request names. */
  private Stage rows(Args a, Args set) throws Exception {
    FileStoreTable t = warehouse.fileStore(a);
    Stage s = new Stage(t);
    RowChange change = new RowChange(s, matcher(a, t.rowType()), set == null ? null : GenericSet.of(set, t.rowType()));
    change.run();
    return s;
  }

  /** "where" tests a condition; "key_columns" with "keys" names rows by the text of some columns. */
  private static java.util.function.Predicate<InternalRow> matcher(Args a, RowType t) {
    List<String> names = a.strings("key_columns");
    if (names.isEmpty()) {
      Predicate p = Filters.where(a, t);
      if (p == null && !a.bool("all", false)) throw new IllegalArgumentException("where, keys or all is expected");
      return p == null ? r -> true : p::test;
    }
    int[] columns = names.stream().mapToInt(t::getFieldIndex).toArray();
    Rows texts = new Rows(t, columns);
    Set<String> wanted = new HashSet<>();
    for (Object key : a.list("keys")) {
      GenericRow r = new GenericRow(t.getFieldCount());
      for (int i = 0; i < columns.length; i++) {
        r.setField(columns[i], Values.value(((List<?>) key).get(i), t.getTypeAt(columns[i])));
      }
      wanted.add(key(texts, r));
    }
    return r -> wanted.contains(key(texts, r));
  }

  private static String key(Rows texts, InternalRow r) {
    Text o = new Text();
    texts.row(o, r);
    return o.toString();
  }
}
