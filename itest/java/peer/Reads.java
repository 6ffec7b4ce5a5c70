package peer;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.DeletionFile;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.SnapshotNotExistPlan;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.StreamTableScan;
import org.apache.paimon.table.source.TableRead;
import org.apache.paimon.table.source.TableScan;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.InternalRowPartitionComputer;
import wire.Args;
import wire.Digest;
import wire.Json;
import wire.Text;

/** read, count, digest, files, stream. */
final class Reads {
  private final Warehouse warehouse;

  Reads(Warehouse warehouse) {
    this.warehouse = warehouse;
  }

  /** What one scan saw beside its rows. */
  private static final class Seen {
    RowType type;
    int[] columns;
    int files;
    Long snapshot;
    final Text text = new Text();
  }

  Map<String, Object> read(Args a) throws Exception {
    List<Object> rows = new ArrayList<>();
    long limit = a.num("limit", Long.MAX_VALUE);
    Seen seen = scan(a, text -> {
      if (rows.size() < limit) rows.add(new Json.Raw(text.toString()));
    }, false);
    List<Object> columns = new ArrayList<>();
    for (int i : seen.columns) columns.add(seen.type.getFieldNames().get(i));
    Map<String, Object> r = answer(seen);
    r.put("columns", columns);
    r.put("rows", rows);
    return r;
  }

  /** Of the rows that are counted only the conditions' columns are read. */
  Map<String, Object> count(Args a) throws Exception {
    long[] n = {0};
    Seen seen = scan(a, text -> n[0]++, true);
    Map<String, Object> r = answer(seen);
    r.put("count", n[0]);
    return r;
  }

  Map<String, Object> digest(Args a) throws Exception {
    Digest d = new Digest();
    Seen seen = scan(a, d::add, false);
    Map<String, Object> r = answer(seen);
    r.put("count", d.rows());
    r.put("digest", d.hex());
    return r;
  }

  /**
   * The rows that a streaming reader gets from a snapshot on, up to the newest; with "overwrite" those of
   * snapshots that replace rows, too.
   */
  Map<String, Object> stream(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(a).copy(Map.of(
        "scan.mode", "from-snapshot", "scan.snapshot-id", String.valueOf(a.num("from")),
        "streaming-read-append-overwrite", String.valueOf(a.bool("overwrite", false))));
    ReadBuilder rb = t.newReadBuilder();
    Rows texts = new Rows(t.rowType(), Rows.all(t.rowType()));
    Text text = new Text();
    List<Object> rows = new ArrayList<>();
    StreamTableScan scan = rb.newStreamScan();
    scan.plan(); // of scan.mode: it finds out where to begin, and has no splits
    for (TableScan.Plan plan = scan.plan(); plan != SnapshotNotExistPlan.INSTANCE; plan = scan.plan()) {
      for (Split split : plan.splits()) {
        try (RecordReader<InternalRow> reader = rb.newRead().createReader(split)) {
          reader.forEachRemaining(row -> {
            text.clear();
            texts.row(text, row);
            rows.add(new Json.Raw(text.toString()));
          });
        }
      }
    }
    return Map.of("rows", rows);
  }

  private static Map<String, Object> answer(Seen s) {
    Map<String, Object> r = new LinkedHashMap<>();
    r.put("files", s.files);
    if (s.snapshot != null) r.put("snapshot", s.snapshot);
    return r;
  }

  /**
   * Reads every row's text. With a condition and "pushdown" (the default) Paimon prunes by partition and
   * statistics and filters the rest itself; with "pushdown":false the same condition is tested on every row.
   */
  private Seen scan(Args a, Consumer<Text> sink, boolean counting) throws Exception {
    Table t = warehouse.table(a);
    Seen s = new Seen();
    s.type = t.rowType();
    s.columns = columns(a, s.type);
    Predicate where = Filters.where(a, s.type);
    boolean pushdown = a.bool("pushdown", true);
    ReadBuilder rb = t.newReadBuilder();
    if (where == null) {
      rb.withProjection(s.columns);
      s.type = rb.readType();
      s.columns = Rows.all(s.type);
    } else if (pushdown) {
      rb.withFilter(where);
      if (counting) {
        s.columns = Filters.columns(a, s.type);
        rb.withProjection(s.columns);
        s.type = rb.readType();
        s.columns = Rows.all(s.type);
      }
    }
    Rows texts = new Rows(s.type, s.columns);
    TableRead read = where != null && pushdown ? rb.newRead().executeFilter() : rb.newRead();
    for (Split split : rb.newScan().plan().splits()) {
      if (split instanceof DataSplit d) {
        s.files += d.dataFiles().size();
        s.snapshot = d.snapshotId();
      }
      try (RecordReader<InternalRow> reader = read.createReader(split)) {
        reader.forEachRemaining(row -> {
          if (where != null && !pushdown && !where.test(row)) return;
          s.text.clear();
          texts.row(s.text, row);
          sink.accept(s.text);
        });
      }
    }
    return s;
  }

  private static int[] columns(Args a, RowType t) {
    List<String> names = a.strings("columns");
    if (names.isEmpty()) return Rows.all(t);
    int[] out = new int[names.size()];
    for (int i = 0; i < out.length; i++) {
      out[i] = t.getFieldIndex(names.get(i));
      if (out[i] < 0) throw new IllegalArgumentException("no column " + names.get(i));
    }
    return out;
  }

  /** The live data files: partition, name, rows, deleted rows, bytes, schema, level. */
  Map<String, Object> files(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(a);
    InternalRowPartitionComputer parts = new InternalRowPartitionComputer(
        t.coreOptions().partitionDefaultName(), t.schema().logicalPartitionType(), t.partitionKeys().toArray(new String[0]), false);
    List<Object> out = new ArrayList<>();
    ReadBuilder rb = t.newReadBuilder();
    for (Split split : rb.newScan().plan().splits()) {
      DataSplit d = (DataSplit) split;
      List<DeletionFile> vectors = d.deletionFiles().orElse(null);
      for (int i = 0; i < d.dataFiles().size(); i++) {
        DataFileMeta f = d.dataFiles().get(i);
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("partition", parts.generatePartValues(d.partition()));
        m.put("bucket", d.bucket());
        m.put("name", f.fileName());
        m.put("rows", f.rowCount());
        m.put("bytes", f.fileSize());
        m.put("schema", f.schemaId());
        m.put("level", f.level());
        DeletionFile dv = vectors == null ? null : vectors.get(i);
        m.put("deleted", dv == null ? 0 : DeletionVector.read(t.fileIO(), dv).getCardinality());
        out.add(m);
      }
    }
    return Map.of("data_files", out);
  }
}
