import java.nio.file.*;
import java.time.*;
import java.util.*;
import org.apache.paimon.Snapshot;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.schema.*;
import org.apache.paimon.tag.Tag;
import org.apache.paimon.types.*;

/** Wrote the *.json files of this folder with Paimon's own classes (paimon-bundle 1.4.2). */
public class JavaJson {
  static final String ODD = "q\"b\\s/n\nt\tr\rb\bf\f0\u00001\u0001e\u001fd\u007fn\u0085l\u2028<>&'\u00e4\u65e5\ud83d\ude00";

  static void w(String name, String s) throws Exception { Files.writeString(Path.of(name + ".json"), s); }

  public static void main(String[] a) throws Exception {
    String all = "{'version':3,'id':7,'schemaId':2,'baseManifestList':'manifest-list-b','baseManifestListSize':980,'deltaManifestList':'manifest-list-d',"
        + "'deltaManifestListSize':1012,'changelogManifestList':'manifest-list-c','changelogManifestListSize':12,'indexManifest':'index-manifest-i','commitUser':'u',"
        + "'commitIdentifier':9223372036854775807,'commitKind':'OVERWRITE','timeMillis':1767225600000,'totalRecordCount':100,'deltaRecordCount':-3,"
        + "'changelogRecordCount':4,'watermark':-9223372036854775808,'statistics':'stat-s','properties':{'a':'1'},'nextRowId':100}";
    Snapshot s = Snapshot.fromJson(all.replace('\'', '"'));
    w("snapshot-all", s.toJson());
    Map<String, String> props = new TreeMap<>();
    props.put(ODD, ODD);
    props.put("empty", "");
    Snapshot odd = new Snapshot(1, 0, "b", null, "d", null, null, null, null, "", -5, Snapshot.CommitKind.APPEND, 0, 0, 0, null, null, null, new LinkedHashMap<>(props), null);
    w("snapshot-odd", odd.toJson());
    for (LocalDateTime t : List.of(LocalDateTime.of(2026, 1, 2, 3, 4), LocalDateTime.of(2026, 1, 2, 3, 4, 5), LocalDateTime.of(2026, 12, 31, 0, 0, 0, 7)))
      w("tag-" + t.getSecond() + "-" + t.getNano(), Tag.fromSnapshotAndTagTtl(s, Duration.ofSeconds(5, t.getNano()), t).toJson());
    w("tag-negative", Tag.fromSnapshotAndTagTtl(s, Duration.ofMillis(-1500), LocalDateTime.of(1, 1, 1, 0, 0)).toJson());
    w("consumer", new Consumer(42).toJson());
    Schema schema = Schema.newBuilder()
        .column("id", DataTypes.BIGINT().notNull(), "the id: " + ODD).column("name", DataTypes.STRING(), null, "'anon'")
        .column("dec", DataTypes.DECIMAL(10, 2)).column("ltz", DataTypes.TIMESTAMP_WITH_LOCAL_TIME_ZONE(3)).column("ch", DataTypes.CHAR(5))
        .column("arr", DataTypes.ARRAY(DataTypes.INT().notNull()))
        .column("m", DataTypes.MAP(DataTypes.STRING().notNull(), DataTypes.ROW(DataTypes.FIELD(0, "x", DataTypes.INT()),
            DataTypes.FIELD(1, "y", DataTypes.ARRAY(DataTypes.ROW(DataTypes.FIELD(0, "z", DataTypes.STRING())))))))
        .column("r", DataTypes.ROW(DataTypes.FIELD(0, "a", DataTypes.ROW(DataTypes.FIELD(0, "b", DataTypes.INT(), "inner"))), DataTypes.FIELD(1, "c", DataTypes.STRING())).notNull())
        .column("ms", DataTypes.MULTISET(DataTypes.STRING())).column("v", DataTypes.VARIANT())
        .partitionKeys("name").option("bucket", "-1").comment("hello").build();
    w("schema-nested", new TableSchema(3, 0, schema.fields(), 100, schema.partitionKeys(), schema.primaryKeys(), schema.options(), schema.comment(), 1795986876595L).toString());
    w("schema-empty", new TableSchema(3, 3, List.of(), -1, List.of(), List.of(), Map.of(), null, 1L).toString());
  }
}
