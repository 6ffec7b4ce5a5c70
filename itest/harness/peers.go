package harness

import (
	"path/filepath"
	"slices"
	"testing"
)

// jvmFlags are those of all judges: a fast start, and little of the two cores
// that the daemon under test needs too.
var jvmFlags = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8"}

// throughputFlags are for reading tables of millions of rows.
var throughputFlags = []string{"-XX:+UseSerialGC", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8"}

// Java returns Paimon's own Java library, warm.
func Java(t testing.TB) JavaPeer {
	t.Helper()
	return JavaPeer{sharedPeer(t, "paimon-java", func(dir string) (Spec, error) { return javaSpec(dir, "3g", jvmFlags) })}
}

// JavaBig returns a second, shared Java judge for tables of millions of rows: it
// starts slower and reads faster, with the given heap, such as "6g".
func JavaBig(t testing.TB, heap string) JavaPeer {
	t.Helper()
	return JavaPeer{sharedPeer(t, "paimon-java-"+heap, func(dir string) (Spec, error) { return javaSpec(dir, heap, throughputFlags) })}
}

func javaSpec(dir, heap string, flags []string) (Spec, error) {
	p, err := fetch("paimon")
	if err != nil {
		return Spec{}, err
	}
	path, args := p.java(append(slices.Clone(flags), "-Xmx"+heap, "-Djava.io.tmpdir="+dir)...)
	return Spec{Path: path, Args: append(args, "peer.Peer")}, nil
}

// PyPaimon returns pypaimon, warm: an independent reader in Python, and a writer
// of appends.
func PyPaimon(t testing.TB) Peer {
	t.Helper()
	return sharedPeer(t, "pypaimon", func(dir string) (Spec, error) { return pythonSpec("pypaimon", "peer.py") })
}

// Rust returns paimon-rust on DataFusion, warm.
func Rust(t testing.TB) RustPeer {
	t.Helper()
	return RustPeer{sharedPeer(t, "paimon-rust", func(dir string) (Spec, error) { return pythonSpec("paimon-rust", "rustpeer.py") })}
}

// Spark returns a local Spark session, warm, whose current catalog holds tables of
// Iceberg: Spark's own SQL, MERGE, UPDATE and DELETE included.
func Spark(t testing.TB) SparkPeer {
	t.Helper()
	return SparkPeer{sharedPeer(t, "spark", func(string) (Spec, error) {
		s, err := pythonSpec("spark", "sparkpeer.py")
		if err != nil {
			return Spec{}, err
		}
		p, err := fetch("spark")
		s.Env = append(s.Env, "SPARK_ICEBERG="+p["iceberg"])
		return s, err
	})}
}

func pythonSpec(part, program string) (Spec, error) {
	p, err := fetch(part)
	if err != nil {
		return Spec{}, err
	}
	return Spec{
		Path: p["python"], Args: []string{filepath.Join(itestDir(), "py", program)},
		Env: []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", "TZ=UTC"},
	}, nil
}

// Flink returns Flink 1.20 with Paimon 1.3, warm: an engine on an older Paimon.
func Flink(t testing.TB) SQLPeer {
	t.Helper()
	return SQLPeer{sharedPeer(t, "flink", func(dir string) (Spec, error) {
		p, err := fetch("flink")
		if err != nil {
			return Spec{}, err
		}
		flags := append([]string{"--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-Xmx2g", "-Djava.io.tmpdir=" + dir}, jvmFlags...)
		path, args := p.java(flags...)
		return Spec{Path: path, Args: append(args, "flinksql.FlinkSql")}, nil
	})}
}
