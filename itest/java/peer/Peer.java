package peer;

import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.TimeZone;
import wire.Args;
import wire.Server;

/**
 * One warm process on Paimon's own Java library: an independent reader of tables, and a foreign writer that
 * can stop between writing its files and committing them. The protocol is in wire/Server.java, the commands
 * are listed in itest/README.md.
 */
public final class Peer {
  private static final int THREADS = 8;

  private final Warehouse warehouse = new Warehouse();
  private final Tables tables = new Tables(warehouse);
  private final Reads reads = new Reads(warehouse);
  private final Writes writes = new Writes(warehouse);
  private final Upkeep upkeep = new Upkeep(warehouse);

  public static void main(String[] args) throws Exception {
    PrintStream out = Server.takeStdout();
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    Peer p = new Peer();
    String version = org.apache.paimon.table.Table.class.getPackage().getImplementationVersion();
    long up = System.currentTimeMillis() - ManagementFactory.getRuntimeMXBean().getStartTime();
    Server.serve(out, Map.of("judge", "paimon-java", "version", version, "start_ms", up), THREADS, p::handle);
  }

  private Map<String, Object> handle(String cmd, Args a) throws Exception {
    return switch (cmd) {
      case "ping" -> Map.of();
      case "tables" -> tables.list(a);
      case "schema" -> tables.schema(a);
      case "create" -> tables.create(a);
      case "alter" -> tables.alter(a);
      case "drop" -> tables.drop(a);
      case "rename" -> tables.rename(a);
      case "truncate" -> tables.truncate(a);
      case "read" -> reads.read(a);
      case "count" -> reads.count(a);
      case "digest" -> reads.digest(a);
      case "files" -> reads.files(a);
      case "stream" -> reads.stream(a);
      case "insert", "delete", "update", "compact", "cluster" -> writes.now(cmd, a);
      case "prepare" -> writes.prepare(a);
      case "commit" -> writes.commit(a);
      case "abort" -> writes.abort(a);
      case "snapshots" -> upkeep.snapshots(a);
      case "expire" -> upkeep.expire(a);
      case "tags" -> upkeep.tags(a);
      case "tag_create" -> upkeep.tagCreate(a);
      case "tag_delete" -> upkeep.tagDelete(a);
      case "rollback" -> upkeep.rollback(a);
      case "branch_create" -> upkeep.branchCreate(a);
      case "branch_fast_forward" -> upkeep.fastForward(a);
      case "compact_manifests" -> upkeep.compactManifests(a);
      case "partitions_drop" -> upkeep.partitionsDrop(a);
      case "partitions_expire" -> upkeep.partitionsExpire(a);
      case "consumers" -> upkeep.consumers(a);
      case "consumer_reset" -> upkeep.consumerReset(a);
      case "orphans" -> upkeep.orphans(a);
      case "forget" -> {
        warehouse.forget(a);
        yield Map.of();
      }
      default -> throw new IllegalArgumentException("unknown command " + cmd);
    };
  }
}
