package peer;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.paimon.Snapshot;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.deletionvectors.Bitmap64DeletionVector;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.DeletionVector;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.index.IndexFileHandler;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.FileKind;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.DeletionFile;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.table.source.TableRead;
import org.apache.paimon.types.RowType;

/**
 * DELETE and UPDATE on an append table, as Paimon's Spark connector does them: with deletion vectors, matched
 * positions are marked and new versions appended; without, each file with a match is rewritten. With row
 * tracking, rows keep their ids. Everything is planned on one snapshot.
 */
final class RowChange {
  private final Stage stage;
  private final Predicate<InternalRow> matches;
  private final GenericSet set; // null: delete
  private final Snapshot base;
  private final FileStoreTable table;
  private final boolean vectors;
  private final RowType tracked; // null: without row tracking
  private final Map<List<Object>, BaseAppendDeleteFileMaintainer> maintainers = new LinkedHashMap<>();
  private long rows;

  RowChange(Stage stage, Predicate<InternalRow> matches, GenericSet set) {
    this.stage = stage;
    this.matches = matches;
    this.set = set;
    this.base = stage.table.snapshotManager().latestSnapshot();
    // The snapshot under the table's schema of now, as Spark plans it: its own may be older.
    this.table = base == null ? stage.table : stage.table.copyWithoutTimeTravel(Map.of("scan.snapshot-id", Long.toString(base.id())));
    this.vectors = table.coreOptions().deletionVectorsEnabled();
    this.tracked = table.coreOptions().rowTrackingEnabled() ? SpecialFields.rowTypeWithRowTracking(table.rowType(), false, true) : null;
  }

  void run() throws Exception {
    // Its writer must not compact buckets meanwhile: Spark's does not either.
    try (TableWriteImpl<?> writer = Writes.writer(stage, Map.of("write-only", "true"))) {
      if (tracked != null) writer.withWriteType(tracked);
      TableRead read = tracked == null ? table.newReadBuilder().newRead() : table.newReadBuilder().withReadType(tracked).newRead();
      for (Split s : table.newReadBuilder().newScan().plan().splits()) {
        DataSplit d = (DataSplit) s;
        for (int i = 0; i < d.dataFiles().size(); i++) {
          if (vectors) mark(read, d, d.dataFiles().get(i), writer);
          else rewrite(read, d, d.dataFiles().get(i), writer);
        }
      }
      stage.messages.addAll(writer.prepareCommit());
    }
    for (BaseAppendDeleteFileMaintainer m : maintainers.values()) addVectors(m);
    stage.facts.put(set == null ? "deleted" : "updated", rows);
    if (base != null) stage.facts.put("base", base.id());
  }

  /** A split of one file without its deletion vector: rows come in file order, a counter is the position. */
  private static DataSplit only(DataSplit d, DataFileMeta f) {
    return DataSplit.builder().withSnapshot(d.snapshotId()).withPartition(d.partition()).withBucket(d.bucket())
        .withBucketPath(d.bucketPath()).withTotalBuckets(d.totalBuckets()).withDataFiles(List.of(f)).rawConvertible(true).build();
  }

  private void mark(TableRead read, DataSplit d, DataFileMeta f, TableWriteImpl<?> writer) throws Exception {
    DeletionFile at = d.deletionFiles().map(files -> files.get(d.dataFiles().indexOf(f))).orElse(null);
    DeletionVector old = at == null ? null : DeletionVector.read(table.fileIO(), at);
    DeletionVector dv = table.coreOptions().deletionVectorBitmap64() ? new Bitmap64DeletionVector() : new BitmapDeletionVector();
    long position = 0;
    boolean hit = false;
    try (RecordReader<InternalRow> r = read.createReader(only(d, f))) {
      RecordReader.RecordIterator<InternalRow> batch;
      while ((batch = r.readBatch()) != null) {
        for (InternalRow row; (row = batch.next()) != null; position++) {
          if (old != null && old.isDeleted(position) || !matches.test(row)) continue;
          dv.delete(position);
          hit = true;
          rows++;
          if (set != null) writer.write(version(row));
        }
        batch.releaseBatch();
      }
    }
    if (!hit) return;
    if (old != null) dv.merge(old);
    maintainers.computeIfAbsent(List.of(d.partition(), d.bucket()), k -> maintainer(d)).notifyNewDeletionVector(f.fileName(), dv);
  }

  private BaseAppendDeleteFileMaintainer maintainer(DataSplit d) {
    IndexFileHandler handler = table.store().newIndexFileHandler();
    return table.coreOptions().bucket() == -1
        ? BaseAppendDeleteFileMaintainer.forUnawareAppend(handler, base, d.partition())
        : BaseAppendDeleteFileMaintainer.forBucketedAppend(handler, base, d.partition(), d.bucket());
  }

  /** The new version of a row; with row tracking it keeps its id, and NULL says that it changed now. */
  private InternalRow version(InternalRow old) {
    GenericRow row = set.apply(old);
    if (tracked == null) return row;
    GenericRow wide = new GenericRow(tracked.getFieldCount());
    int n = row.getFieldCount();
    for (int i = 0; i < n; i++) wide.setField(i, row.getField(i));
    wide.setField(n, old.getLong(n));
    return wide;
  }

  private void addVectors(BaseAppendDeleteFileMaintainer m) {
    List<IndexFileMeta> add = new ArrayList<>();
    List<IndexFileMeta> remove = new ArrayList<>();
    for (IndexManifestEntry e : m.persist()) (e.kind() == FileKind.ADD ? add : remove).add(e.indexFile());
    if (add.isEmpty() && remove.isEmpty()) return;
    stage.messages.add(message(m.getPartition(), m.getBucket(), new DataIncrement(List.of(), List.of(), List.of(), add, remove)));
  }

  private CommitMessage message(BinaryRow partition, int bucket, DataIncrement increment) {
    return new CommitMessageImpl(partition, bucket, table.coreOptions().bucket(), increment, CompactIncrement.emptyIncrement());
  }

  private void rewrite(TableRead read, DataSplit d, DataFileMeta f, TableWriteImpl<?> writer) throws Exception {
    long before = rows;
    try (RecordReader<InternalRow> r = read.createReader(only(d, f))) {
      r.forEachRemaining(row -> {
        if (matches.test(row)) rows++;
      });
    }
    if (rows == before) return;
    try (RecordReader<InternalRow> r = read.createReader(only(d, f))) {
      RecordReader.RecordIterator<InternalRow> batch;
      while ((batch = r.readBatch()) != null) {
        for (InternalRow row; (row = batch.next()) != null; ) {
          if (!matches.test(row)) writer.write(row);
          else if (set != null) writer.write(version(row));
        }
        batch.releaseBatch();
      }
    }
    stage.messages.add(message(d.partition(), d.bucket(), new DataIncrement(List.of(), List.of(f), List.of())));
  }
}
