package peer;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.types.DataField;
import wire.Args;

/** tables, schema, create, alter, drop, truncate. */
final class Tables {
  private final Warehouse warehouse;

  Tables(Warehouse warehouse) {
    this.warehouse = warehouse;
  }

  Map<String, Object> list(Args a) throws Exception {
    Catalog c = warehouse.catalog(a);
    List<Object> out = new ArrayList<>();
    for (String db : a.has("database") ? List.of(a.str("database")) : c.listDatabases()) {
      for (String t : c.listTables(db)) out.add(db + "." + t);
    }
    return Map.of("tables", out);
  }

  Map<String, Object> schema(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(a);
    List<Object> columns = new ArrayList<>();
    for (DataField f : t.rowType().getFields()) {
      Map<String, Object> m = new LinkedHashMap<>();
      m.put("id", f.id());
      m.put("name", f.name());
      m.put("type", f.type().asSQLString());
      if (f.description() != null) m.put("comment", f.description());
      if (f.defaultValue() != null) m.put("default", f.defaultValue());
      columns.add(m);
    }
    Map<String, Object> r = new LinkedHashMap<>();
    r.put("schema_id", t.schema().id());
    r.put("columns", columns);
    r.put("partition_keys", t.partitionKeys());
    r.put("primary_keys", t.primaryKeys());
    r.put("options", t.schema().options());
    r.put("comment", t.comment().orElse(null));
    return r;
  }

  Map<String, Object> create(Args a) throws Exception {
    Schema.Builder b = Schema.newBuilder();
    for (Object o : a.list("columns")) {
      Args c = Args.of(o);
      b.column(c.str("name"), Types.parse(c.str("type")), c.str("comment", null), c.str("default", null));
    }
    b.partitionKeys(a.strings("partition_keys"));
    b.primaryKey(a.strings("primary_keys"));
    b.options(a.texts("options"));
    if (a.has("comment")) b.comment(a.str("comment"));
    Catalog c = warehouse.catalog(a);
    c.createDatabase(Warehouse.name(a).getDatabaseName(), true);
    c.createTable(Warehouse.name(a), b.build(), a.bool("if_not_exists", false));
    return Map.of();
  }

  Map<String, Object> alter(Args a) throws Exception {
    List<SchemaChange> changes = new ArrayList<>();
    for (Object o : a.list("changes")) changes.add(change(Args.of(o)));
    warehouse.catalog(a).alterTable(Warehouse.name(a), changes, false);
    return Map.of("schema_id", warehouse.fileStore(a).schema().id());
  }

  private static SchemaChange change(Args c) {
    return switch (c.str("op")) {
      case "add_column" -> SchemaChange.addColumn(path(c), Types.parse(c.str("type")), c.str("comment", null), move(c));
      case "drop_column" -> SchemaChange.dropColumn(path(c));
      case "rename_column" -> SchemaChange.renameColumn(path(c), c.str("to"));
      case "update_type" -> SchemaChange.updateColumnType(path(c), Types.parse(c.str("type")), c.bool("keep_nullability", false));
      case "update_nullability" -> SchemaChange.updateColumnNullability(path(c), c.bool("nullable", true));
      case "update_comment" -> SchemaChange.updateColumnComment(c.str("name"), c.str("comment"));
      case "update_default" -> SchemaChange.updateColumnDefaultValue(new String[] {c.str("name")}, c.str("default"));
      case "update_position" -> SchemaChange.updateColumnPosition(move(c));
      case "set_option" -> SchemaChange.setOption(c.str("key"), c.str("value"));
      case "remove_option" -> SchemaChange.removeOption(c.str("key"));
      default -> throw new IllegalArgumentException("unknown change " + c.str("op"));
    };
  }

  /** The column "name", or a field inside of one: "path" with "element", "key" and "value" for those of collections. */
  private static String[] path(Args c) {
    List<String> path = c.strings("path");
    return path.isEmpty() ? new String[] {c.str("name")} : path.toArray(new String[0]);
  }

  private static SchemaChange.Move move(Args c) {
    if (c.bool("first", false)) return SchemaChange.Move.first(c.str("name"));
    return c.has("after") ? SchemaChange.Move.after(c.str("name"), c.str("after")) : null;
  }

  Map<String, Object> drop(Args a) throws Exception {
    warehouse.catalog(a).dropTable(Warehouse.name(a), a.bool("if_exists", false));
    return Map.of();
  }

  Map<String, Object> rename(Args a) throws Exception {
    warehouse.catalog(a).renameTable(Warehouse.name(a), Identifier.fromString(a.str("to")), false);
    return Map.of();
  }

  Map<String, Object> truncate(Args a) throws Exception {
    FileStoreTable t = warehouse.fileStore(a);
    try (var c = t.newBatchWriteBuilder().newCommit()) {
      c.truncateTable();
    }
    return Map.of();
  }
}
