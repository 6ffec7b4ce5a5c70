package flinksql;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;
import wire.Args;
import wire.Digest;
import wire.Json;
import wire.Server;
import wire.Text;

/**
 * Flink SQL in one process, on Paimon's Flink connector of an older release: a real engine as reader, writer
 * and compactor. The warehouse of a request is the catalog p. The protocol is in wire/Server.java.
 */
public final class FlinkSql {
  private final Map<String, TableEnvironment> environments = new HashMap<>();

  public static void main(String[] args) throws Exception {
    PrintStream out = Server.takeStdout();
    FlinkSql f = new FlinkSql();
    Server.serve(out, Map.of("judge", "flink", "version", "1.20.1"), 1, f::handle);
  }

  private TableEnvironment environment(Args a) {
    return environments.computeIfAbsent(a.str("warehouse"), w -> {
      Configuration c = new Configuration();
      c.setString("parallelism.default", "1");
      c.setString("taskmanager.memory.network.max", "64mb");
      c.setString("table.dml-sync", "true");
      c.setString("table.local-time-zone", "UTC");
      TableEnvironment t = TableEnvironment.create(EnvironmentSettings.newInstance().inBatchMode().withConfiguration(c).build());
      t.executeSql("CREATE CATALOG p WITH ('type'='paimon','cache-enabled'='false','warehouse'='" + w + "')");
      t.executeSql("USE CATALOG p");
      return t;
    });
  }

  private Map<String, Object> handle(String cmd, Args a) throws Exception {
    Map<String, Object> r = new LinkedHashMap<>();
    switch (cmd) {
      case "ping" -> {}
      case "sql" -> rows(r, a, a.str("sql"));
      case "read" -> rows(r, a, select(a));
      case "count" -> {
        long[] n = {0};
        run(a, select(a), text -> n[0]++);
        r.put("count", n[0]);
      }
      case "digest" -> {
        Digest d = new Digest();
        run(a, select(a), d::add);
        r.put("count", d.rows());
        r.put("digest", d.hex());
      }
      case "tables" -> {
        List<Object> tables = new ArrayList<>();
        for (String db : environment(a).listDatabases()) {
          for (String t : environment(a).listTables("p", db)) tables.add(db + "." + t);
        }
        r.put("tables", tables);
      }
      case "forget" -> environments.remove(a.str("warehouse"));
      default -> throw new IllegalArgumentException("unknown command " + cmd);
    }
    return r;
  }

  private void rows(Map<String, Object> r, Args a, String sql) throws Exception {
    List<Object> rows = new ArrayList<>();
    long limit = a.num("limit", Long.MAX_VALUE);
    r.put("columns", run(a, sql, text -> {
      if (rows.size() < limit) rows.add(new Json.Raw(text.toString()));
    }));
    r.put("rows", rows);
  }

  /** Runs one statement to its end and returns the columns of its result. */
  private List<String> run(Args a, String sql, Consumer<Text> sink) throws Exception {
    TableResult result = environment(a).executeSql(sql);
    List<Column> columns = result.getResolvedSchema().getColumns();
    List<String> names = columns.stream().map(Column::getName).toList();
    List<LogicalType> types = columns.stream().map(c -> c.getDataType().getLogicalType()).toList();
    if (result.getResultKind() != ResultKind.SUCCESS_WITH_CONTENT || sql.stripLeading().regionMatches(true, 0, "INSERT", 0, 6)) {
      result.await(); // collect() of an INSERT only yields -1 and an error about its cluster
      return names;
    }
    Text text = new Text();
    try (CloseableIterator<Row> it = result.collect()) {
      while (it.hasNext()) {
        text.clear();
        Texts.row(text, it.next(), names, types);
        sink.accept(text);
      }
    }
    return names;
  }

  private static String quote(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  private String select(Args a) {
    String[] name = a.str("table").split("\\.", 2);
    String table = "p." + quote(name[0]) + "." + quote(name[1]);
    String columns = a.strings("columns").stream().map(FlinkSql::quote).collect(Collectors.joining(", "));
    List<String> options = new ArrayList<>();
    if (a.has("snapshot")) options.add("'scan.snapshot-id'='" + a.str("snapshot") + "'");
    if (a.has("tag")) options.add("'scan.tag-name'='" + a.str("tag") + "'");
    return "SELECT " + (columns.isEmpty() ? "*" : columns) + " FROM " + table
        + (options.isEmpty() ? "" : " /*+ OPTIONS(" + String.join(",", options) + ") */") + where(a, table);
  }

  private String where(Args a, String table) {
    List<String> all = new ArrayList<>();
    if (a.list("where").isEmpty()) return "";
    Map<String, LogicalType> types = new HashMap<>();
    for (Column c : environment(a).from(table).getResolvedSchema().getColumns()) types.put(c.getName(), c.getDataType().getLogicalType());
    for (Object o : a.list("where")) all.add(condition(Args.of(o), types));
    return " WHERE " + String.join(" AND ", all);
  }

  private static String condition(Args c, Map<String, LogicalType> types) {
    String name = c.str("column");
    LogicalType t = types.get(name);
    if (t == null) throw new IllegalArgumentException("no column " + name);
    String op = c.str("op").toUpperCase();
    List<String> values = c.list("values").stream().map(v -> literal(v.toString(), t)).toList();
    return quote(name) + " " + switch (op) {
      case "IS NULL", "IS NOT NULL" -> op;
      case "IN", "NOT IN" -> op + " (" + String.join(", ", values) + ")";
      case "BETWEEN" -> "BETWEEN " + values.get(0) + " AND " + values.get(1);
      case "!=" -> "<> " + literal(c.str("value"), t);
      case "STARTS WITH" -> "LIKE " + literal(c.str("value") + "%", t);
      default -> op + " " + literal(c.str("value"), t);
    };
  }

  private static String literal(String v, LogicalType t) {
    return switch (t.getTypeRoot()) {
      case CHAR, VARCHAR -> "'" + v.replace("'", "''") + "'";
      case BINARY, VARBINARY -> "x'" + v + "'";
      case TIMESTAMP_WITHOUT_TIME_ZONE, TIMESTAMP_WITH_LOCAL_TIME_ZONE ->
          "CAST('" + v.replace('T', ' ').replace("Z", "") + "' AS " + t.copy(true).asSerializableString() + ")";
      default -> "CAST('" + v + "' AS " + t.copy(true).asSerializableString() + ")";
    };
  }
}
