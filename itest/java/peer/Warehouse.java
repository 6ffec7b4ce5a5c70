package peer;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.options.Options;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.Table;
import wire.Args;

/**
 * Catalogs by warehouse path. Paimon's caches are off: a judge must see what is on disk now, also after
 * another process rolled back and wrote the same snapshot id again.
 */
final class Warehouse {
  private final Map<String, Catalog> catalogs = new ConcurrentHashMap<>();

  Catalog catalog(Args a) {
    return catalogs.computeIfAbsent(a.str("warehouse"), path -> {
      Options o = new Options();
      o.set("warehouse", path);
      o.set("cache-enabled", "false");
      return CatalogFactory.createCatalog(CatalogContext.create(o));
    });
  }

  static Identifier name(Args a) {
    return Identifier.fromString(a.str("table"));
  }

  /** Any table, also a system table such as db.t$files, at the snapshot or tag the request names. */
  Table table(Args a) throws Exception {
    Table t = catalog(a).getTable(name(a));
    Map<String, String> options = new HashMap<>(a.texts("dynamic_options"));
    if (a.has("snapshot")) options.put("scan.snapshot-id", a.str("snapshot"));
    if (a.has("tag")) options.put("scan.tag-name", a.str("tag"));
    return options.isEmpty() ? t : t.copy(options);
  }

  FileStoreTable fileStore(Args a) throws Exception {
    return (FileStoreTable) table(a);
  }

  /** Forgets a warehouse, so that tests do not pile up catalogs. */
  void forget(Args a) throws Exception {
    Catalog c = catalogs.remove(a.str("warehouse"));
    if (c != null) c.close();
  }
}
