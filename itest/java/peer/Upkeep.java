package peer;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.paimon.Snapshot;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.fs.Path;
import org.apache.paimon.operation.LocalOrphanFilesClean;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.table.FileStoreTable;
import wire.Args;
import wire.Json;

/** snapshots, expire, tags, rollback, branches, consumers, orphans. */
final class Upkeep {
  private final Warehouse warehouse;

  Upkeep(Warehouse warehouse) {
    this.warehouse = warehouse;
  }

  /** Every snapshot file there is, as its JSON, in ascending order. */
  Map<String, Object> snapshots(Args a) throws Exception {
    List<Snapshot> all = warehouse.fileStore(a).snapshotManager().safelyGetAllSnapshots();
    all.sort((x, y) -> Long.compare(x.id(), y.id()));
    List<Object> out = new ArrayList<>();
    for (Snapshot s : all) out.add(Json.parse(s.toJson()));
    return Map.of("snapshots", out);
  }

  /** The bounds default to the table's options. "older_than_ms" is the age a snapshot must have. */
  Map<String, Object> expire(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(a);
    ExpireConfig d = t.coreOptions().expireConfig();
    ExpireConfig c = ExpireConfig.builder()
        .snapshotRetainMax((int) a.num("retain_max", d.getSnapshotRetainMax()))
        .snapshotRetainMin((int) a.num("retain_min", Math.min(d.getSnapshotRetainMin(), a.num("retain_max", Integer.MAX_VALUE))))
        .snapshotTimeRetain(Duration.ofMillis(a.num("older_than_ms", d.getSnapshotTimeRetain().toMillis())))
        .snapshotMaxDeletes((int) a.num("max_deletes", d.getSnapshotMaxDeletes()))
        .build();
    return Map.of("expired", t.newExpireSnapshots().config(c).expire());
  }

  Map<String, Object> tagCreate(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(new Args(without(a, "snapshot", "tag")));
    Duration retained = a.has("retained_ms") ? Duration.ofMillis(a.num("retained_ms")) : null;
    if (a.has("snapshot")) t.createTag(a.str("tag"), a.num("snapshot"), retained);
    else t.createTag(a.str("tag"), retained);
    return Map.of();
  }

  Map<String, Object> tagDelete(Args a) throws Exception {
    warehouse.fileStore(new Args(without(a, "tag"))).deleteTag(a.str("tag"));
    return Map.of();
  }

  Map<String, Object> tags(Args a) throws Exception {
    Map<String, Object> out = new LinkedHashMap<>();
    warehouse.fileStore(a).tagManager().tags().forEach((s, names) -> names.forEach(n -> out.put(n, s.id())));
    return Map.of("tags", out);
  }

  Map<String, Object> rollback(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(new Args(without(a, "snapshot", "tag")));
    if (a.has("tag")) t.rollbackTo(a.str("tag"));
    else t.rollbackTo(a.num("snapshot"));
    return Map.of();
  }

  Map<String, Object> branchCreate(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(new Args(without(a, "tag")));
    if (a.has("tag")) t.createBranch(a.str("branch"), a.str("tag"));
    else t.createBranch(a.str("branch"));
    return Map.of();
  }

  Map<String, Object> consumers(Args a) throws Exception {
    return Map.of("consumers", warehouse.fileStore(a).consumerManager().consumers());
  }

  /** Sets a consumer's next snapshot, or removes the consumer when there is none. */
  Map<String, Object> consumerReset(Args a) throws Exception {
    var manager = warehouse.fileStore(a).consumerManager();
    if (a.has("next")) manager.resetConsumer(a.str("consumer"), new Consumer(a.num("next")));
    else manager.deleteConsumer(a.str("consumer"));
    return Map.of();
  }

  /** What Paimon's orphan cleaner would remove now, or (with "remove") removes. Files younger than older_than_ms stay. */
  Map<String, Object> orphans(Args a) throws Exception {
    long before = System.currentTimeMillis() - a.num("older_than_ms", 0) + 1;
    var result = new LocalOrphanFilesClean(warehouse.fileStore(a), before, !a.bool("remove", false)).clean();
    List<Object> out = new ArrayList<>();
    for (Path p : result.getDeletedFilesPath()) out.add(p.toUri().getPath());
    return Map.of("files", out);
  }

  /** Makes a branch the main one: what was on main since the branch began is gone. */
  Map<String, Object> fastForward(Args a) throws Exception {
    warehouse.fileStore(new Args(without(a, "branch"))).fastForward(a.str("branch"));
    return Map.of();
  }

  /** Rewrites the manifests; the content and the properties stay. */
  Map<String, Object> compactManifests(Args a) throws Exception {
    try (var c = warehouse.fileStore(a).newBatchWriteBuilder().newCommit()) {
      c.compactManifests();
    }
    return Map.of();
  }

  /** Drops the partitions, each named by texts. */
  Map<String, Object> partitionsDrop(Args a) throws Exception {
    List<Map<String, String>> specs = new ArrayList<>();
    for (Object o : a.list("partitions")) specs.add(new Args(Map.of("p", o)).texts("p"));
    try (var c = warehouse.fileStore(new Args(without(a, "partitions"))).newBatchWriteBuilder().newCommit()) {
      c.truncatePartitions(specs);
    }
    return Map.of();
  }

  /** Paimon's partition expiry, under options such as partition.expiration-time; returns the partitions that went. */
  Map<String, Object> partitionsExpire(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(new Args(without(a, "options"))).copy(a.texts("options"));
    var expire = t.store().newPartitionExpire("peer-" + UUID.randomUUID(), t);
    List<Map<String, String>> gone = expire.expire(Long.MAX_VALUE);
    return Map.of("partitions", gone == null ? List.of() : gone);
  }

  private static Map<String, Object> without(Args a, String... keys) {
    Map<String, Object> m = new LinkedHashMap<>(a.map());
    for (String k : keys) m.remove(k);
    return m;
  }
}
