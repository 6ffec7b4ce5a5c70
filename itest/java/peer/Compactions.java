package peer;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.paimon.AppendOnlyFileStore;
import org.apache.paimon.append.AppendCompactCoordinator;
import org.apache.paimon.append.AppendCompactTask;
import org.apache.paimon.append.cluster.IncrementalClusterManager;
import org.apache.paimon.compact.CompactUnit;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.operation.BaseAppendFileStoreWrite;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.SpecialFields;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.TableWriteImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.EndOfScanException;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.utils.Pair;
import wire.Args;

/** The library's own compaction of append tables, deletion vectors included. */
final class Compactions {
  private final Warehouse warehouse;

  Compactions(Warehouse warehouse) {
    this.warehouse = warehouse;
  }

  /**
   * Rewrites what Paimon's coordinator picks. "min_file_num" overrides its threshold for small files;
   * "full" takes all files of every partition, or of the one that "partition" names, one task each.
   */
  Stage stage(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(a);
    if (a.has("min_file_num")) t = t.copy(Map.of("compaction.min.file-num", a.str("min_file_num")));
    Stage s = new Stage(t);
    if (t.coreOptions().bucket() != -1) return buckets(s);
    List<AppendCompactTask> tasks = a.bool("full", false) ? everything(t, a.texts("partition")) : picked(t);
    BaseAppendFileStoreWrite write = ((AppendOnlyFileStore) t.store()).newWrite(s.user);
    // As Paimon's engines do: without it, the rows of tracked tables would lose their ids.
    if (t.coreOptions().rowTrackingEnabled()) write.withWriteType(SpecialFields.rowTypeWithRowTracking(t.rowType()));
    try {
      for (AppendCompactTask task : tasks) s.messages.add(task.doCompact(t, write));
    } finally {
      write.close();
    }
    s.facts.put("tasks", tasks.size());
    s.facts.put("files_before", tasks.stream().mapToInt(x -> x.compactBefore().size()).sum());
    s.facts.put("files_after", tasks.stream().mapToInt(x -> x.compactAfter().size()).sum());
    return s;
  }

  /**
   * Incremental clustering of a table without buckets as Paimon's engines do it (Spark's CompactProcedure): what the
   * manager picks, or with "full" everything, is sorted and goes up a level. One clustering column, of a type
   * whose values Java compares.
   */
  Stage cluster(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(a);
    Stage s = new Stage(t);
    IncrementalClusterManager manager = new IncrementalClusterManager(t);
    Map<BinaryRow, CompactUnit> units = manager.createCompactUnits(a.bool("full", false));
    for (Map.Entry<BinaryRow, Pair<List<DataSplit>, CommitMessage>> e : manager.toSplitsAndRewriteDvFiles(units).entrySet()) {
      CompactUnit unit = units.get(e.getKey());
      CommitMessageImpl vectors = (CommitMessageImpl) e.getValue().getRight();
      List<DataFileMeta> after = new ArrayList<>();
      try (TableWriteImpl<?> w = Writes.writer(s, Map.of("write-only", "true"))) {
        for (InternalRow row : sorted(t, e.getValue().getLeft(), manager.clusterKeys().get(0))) w.write(row);
        for (CommitMessage m : w.prepareCommit()) after.addAll(((CommitMessageImpl) m).newFilesIncrement().newFiles());
      }
      s.messages.add(new CommitMessageImpl(e.getKey(), 0, t.coreOptions().bucket(), DataIncrement.emptyIncrement(), new CompactIncrement(
          unit.files(), IncrementalClusterManager.upgrade(after, unit.outputLevel()), List.of(),
          vectors == null ? List.of() : vectors.compactIncrement().newIndexFiles(),
          vectors == null ? List.of() : vectors.compactIncrement().deletedIndexFiles())));
      s.facts.merge("files_before", unit.files().size(), (x, y) -> (int) x + (int) y);
      s.facts.merge("files_after", after.size(), (x, y) -> (int) x + (int) y);
    }
    s.facts.put("tasks", units.size());
    return s;
  }

  private static List<InternalRow> sorted(FileStoreTable t, List<DataSplit> splits, String key) throws Exception {
    int column = t.rowType().getFieldIndex(key);
    InternalRow.FieldGetter getter = InternalRow.createFieldGetter(t.rowType().getTypeAt(column), column);
    InternalRowSerializer copier = new InternalRowSerializer(t.rowType());
    List<InternalRow> rows = new ArrayList<>();
    for (DataSplit split : splits) {
      t.newReadBuilder().newRead().createReader(split).forEachRemaining(r -> rows.add(copier.copy(r)));
    }
    rows.sort(Comparator.comparing(r -> (Comparable) getter.getFieldOrNull(r), Comparator.nullsFirst(Comparator.naturalOrder())));
    return rows;
  }

  /** Buckets are compacted by their writer, whole ones here. */
  private static Stage buckets(Stage s) throws Exception {
    Map<BinaryRow, Set<Integer>> buckets = new LinkedHashMap<>();
    for (Split x : s.table.newReadBuilder().newScan().plan().splits()) {
      DataSplit d = (DataSplit) x;
      buckets.computeIfAbsent(d.partition(), p -> new TreeSet<>()).add(d.bucket());
    }
    try (TableWriteImpl<?> w = Writes.writer(s, Map.of("write-only", "false"))) {
      for (Map.Entry<BinaryRow, Set<Integer>> e : buckets.entrySet()) {
        for (int b : e.getValue()) w.compact(e.getKey(), b, true);
      }
      s.messages.addAll(w.prepareCommit());
    }
    s.facts.put("tasks", buckets.size());
    return s;
  }

  private static List<AppendCompactTask> picked(FileStoreTable t) {
    List<AppendCompactTask> tasks = new ArrayList<>();
    AppendCompactCoordinator coordinator = new AppendCompactCoordinator(t, false);
    try {
      do {
        tasks.addAll(coordinator.run());
      } while (coordinator.batchRemainFiles());
    } catch (EndOfScanException e) {
      // the coordinator's way of saying that there is nothing left
    }
    return tasks;
  }

  private static List<AppendCompactTask> everything(FileStoreTable t, Map<String, String> partition) {
    Map<BinaryRow, List<DataFileMeta>> files = new LinkedHashMap<>();
    for (Split s : t.newReadBuilder().newScan().plan().splits()) {
      DataSplit d = (DataSplit) s;
      if (!partition.isEmpty() && !t.store().partitionComputer().generatePartValues(d.partition()).equals(partition)) continue;
      files.computeIfAbsent(d.partition(), p -> new ArrayList<>()).addAll(d.dataFiles());
    }
    List<AppendCompactTask> tasks = new ArrayList<>();
    boolean vectors = t.coreOptions().deletionVectorsEnabled();
    files.forEach((p, f) -> {
      if (vectors || f.size() > 1) tasks.add(new AppendCompactTask(p, f));
    });
    return tasks;
  }
}
