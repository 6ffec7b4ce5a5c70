// Package manifest reads and writes Paimon's manifests: the data manifests
// (entries that add and delete data files), the manifest lists of a snapshot,
// and the index manifests (entries of deletion-vector and other index files).
// All three are Avro object container files.
//
// Writing uses exactly the schemas of Java (Paimon 2.0.0), text for text, so that
// Java may copy our blocks verbatim. Reading is driven by the writer's schema in
// the file: fields may be missing at the end, added, reordered, wrapped in unions,
// and records may have other names. A file whose schema holds more than this
// package knows is readable, but reported, so that nobody rewrites it with loss.
package manifest
