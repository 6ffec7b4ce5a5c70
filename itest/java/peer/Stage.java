package peer;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.paimon.Snapshot;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.TableCommitImpl;
import org.apache.paimon.utils.SnapshotManager;

/**
 * A write whose files exist and whose commit does not: the first phase of a foreign writer. Its commit user
 * is its own, so that the snapshots it made can be told from all others.
 */
final class Stage {
  final FileStoreTable table;
  final String user = "peer-" + UUID.randomUUID();
  final List<CommitMessage> messages = new ArrayList<>();
  final Map<String, Object> facts = new LinkedHashMap<>();
  Map<String, String> overwrite;

  Stage(FileStoreTable table) {
    this.table = table;
  }

  /** Publishes the write. A lost race throws what Paimon throws. */
  Map<String, Object> commit() throws Exception {
    try (TableCommitImpl c = table.newCommit(user)) {
      if (overwrite != null) c.withOverwrite(overwrite);
      c.ignoreEmptyCommit(overwrite == null);
      c.commit(messages);
    }
    Map<String, Object> r = new LinkedHashMap<>(facts);
    r.put("snapshots", own());
    return r;
  }

  /** Deletes the files of a write that will not be committed. */
  void abort() throws Exception {
    try (TableCommitImpl c = table.newCommit(user)) {
      c.abort(messages);
    }
  }

  private List<Object> own() throws Exception {
    SnapshotManager m = table.snapshotManager();
    List<Object> ids = new ArrayList<>();
    Long latest = m.latestSnapshotIdFromFileSystem();
    for (long id = latest == null ? 0 : latest; id > 0 && m.snapshotExists(id); id--) {
      Snapshot s = m.snapshot(id);
      if (s.commitUser().equals(user)) ids.add(0, id);
      else if (!ids.isEmpty()) break;
    }
    return ids;
  }
}
