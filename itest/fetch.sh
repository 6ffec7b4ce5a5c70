#!/usr/bin/env bash
# Fetches the real parts that the integration tests judge with, through Maven and pip, and compiles our small
# Java programs against them. Safe to repeat and to run side by side; what is complete is not fetched again.
#
#   itest/fetch.sh [tools|kafka|connect|paimon|flink|pypaimon|paimon-rust|versitygw|prometheus|compose|buildah|postgres|spark|delta|all]…
#
# Without a name: all but postgres and delta, which the test and the benchmark that need them ask for.
#
# Standard output: where things are, one name=value a line. Standard error: what is being done.
# Cache: $APPLIER_CACHE, else ${XDG_CACHE_HOME:-$HOME/.cache}/applier. Nothing is written elsewhere
# (Maven keeps its own repository as always).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${APPLIER_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME or APPLIER_CACHE must be set}/.cache}/applier}

say() { echo "fetch: $*" >&2; }
fail() { say "error: $*"; exit 1; }

# need COMMAND PACKAGE…: the command must be there; as root on a machine with apt-get it is installed.
need() {
  local command=$1
  shift
  command -v "$command" >/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "$command is missing: apt-get install $*"
    (
      flock 9
      apt-get -qq update >&2 && DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install "$@" >&2
    ) 9>"$cache/.lock-apt" || fail "apt-get install $* failed"
  fi
  command -v "$command" >/dev/null || fail "$command is missing. Install it (Debian: apt-get install $*) and try again."
}

need_java() {
  need java openjdk-17-jdk-headless
  need javac openjdk-17-jdk-headless
  local major
  major=$(javac -version 2>&1 | sed -E 's/^javac ([0-9]+).*/\1/')
  [ "$major" -ge 17 ] || fail "javac is version $major; 17 or newer is needed"
}

need_python() {
  need python3 python3 python3-venv
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "python3 is $(python3 -V); 3.11 or newer is needed"
  python3 -c 'import ensurepip, venv' 2>/dev/null && return
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get -qq update >&2 && DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=300 install python3-venv >&2
  fi
  python3 -c 'import ensurepip, venv' 2>/dev/null || fail "python3 has no venv. Install it (Debian: apt-get install python3-venv) and try again."
}

hash_of() { cat "$@" | sha256sum | cut -c1-16; }

# stamp DIR SPEC: what a complete part looks like: the hash of its specification, then every file with its size.
stamp() {
  hash_of "$2"
  (cd "$1" && find . -name .complete -prune -o -name __pycache__ -prune -o \( -type f -o -type l \) -printf '%s %P\n' | LC_ALL=C sort)
}

# complete DIR SPEC: true when nothing is missing or changed since the part was fetched.
complete() {
  [ -f "$1/.complete" ] && stamp "$1" "$2" | cmp -s - "$1/.complete"
}

# keep PART DIR SPEC COMMAND…: runs the command to fill DIR unless it is complete, one process at a time.
# A half-filled DIR of a killed run has no valid stamp and is filled anew.
keep() {
  local part=$1 dir=$2 spec=$3
  shift 3
  if complete "$dir" "$spec"; then return; fi
  (
    flock 9
    if complete "$dir" "$spec"; then exit 0; fi
    local from=$SECONDS
    say "$part: making $dir"
    rm -rf "$dir"
    mkdir -p "$dir"
    "$@" || { rm -rf "$dir"; fail "$part could not be fetched"; }
    stamp "$dir" "$spec" >"$cache/.stamp-$part"
    mv "$cache/.stamp-$part" "$dir/.complete"
    say "$part: $(du -sm "$dir" | cut -f1) MB in $((SECONDS - from)) s"
  ) 9>"$cache/.lock-$part"
}

# Maven's repository is not safe for several Maven processes: one at a time.
maven_copy() {
  local pom=$1 dir=$2
  (
    flock 8
    mvn -q -B -Dstyle.color=never --no-transfer-progress -f "$pom" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$dir" </dev/null 2>&1 | sed "s/$(printf "\033")\\[[0-9;]*m//g" >&2
  ) 8>"$cache/.lock-maven"
}

# java_part NAME PROGRAM: jars by java/NAME/pom.xml, classes from java/PROGRAM (and what it uses of java/wire).
java_part() {
  local name=$1 program=$2 pom version lib
  pom=$here/java/$name/pom.xml
  version=$(sed -n 's|.*<version>\(.*\)</version>.*|\1|p' "$pom" | head -1)
  lib=$cache/$name-$version/lib
  need_java
  complete "$lib" "$pom" || need mvn maven
  keep "$name" "$lib" "$pom" maven_copy "$pom" "$lib"
  echo "$name.lib=$lib"
  [ -z "$program" ] || compile "$name" "$program" "$lib"
}

compile() {
  local name=$1 program=$2 lib=$3 sources list dir
  sources=$cache/.sources-$program.$$
  find "$here/java/$program" "$here/java/wire" -name '*.java' | LC_ALL=C sort | xargs cat >"$sources"
  dir=$cache/classes/$program-$(hash_of "$sources" "$lib/.complete")
  if ! complete "$dir" "$sources"; then
    list=("$here/java/$program"/*.java)
    keep "classes-$program" "$dir" "$sources" \
      javac --release 17 -nowarn -d "$dir" -cp "$lib/*" -sourcepath "$here/java" "${list[@]}"
  fi
  rm -f "$sources"
  echo "$name.classes=$dir"
}

# python_part NAME: a virtual environment by py/NAME.txt, whose first line names the part and its version.
python_part() {
  local name=$1 spec version dir
  spec=$here/py/$name.txt
  version=$(sed -n '1s/.*==//p' "$spec")
  dir=$cache/$name-$version
  need_python
  # A Python that was upgraded or moved leaves a complete environment without an interpreter.
  [ ! -f "$dir/.complete" ] || "$dir/bin/python" -c '' 2>/dev/null || rm -f "$dir/.complete"
  keep "$name" "$dir" "$spec" python_venv "$spec" "$dir"
  echo "$name.python=$dir/bin/python"
}

python_venv() {
  python3 -m venv "$2" >&2 &&
    "$2/bin/python" -m pip install -q --disable-pip-version-check --no-input -r "$1" </dev/null >&2
}

# go_part NAME: a Go program by go/NAME.txt, built from its own module at that version.
go_part() {
  local name=$1 spec version dir
  spec=$here/go/$name.txt
  version=$(sed 's/.*@//' "$spec")
  dir=$cache/$name-$version
  need go golang
  keep "$name" "$dir" "$spec" env GOBIN="$dir" GOFLAGS= go install "$(cat "$spec")"
  echo "$name.program=$dir/$name"
}

# connect_part: Kafka Connect's jars, and Debezium's in a folder of their own, as Connect wants plugins.
connect_part() {
  local pom version lib
  pom=$here/java/connect/pom.xml
  version=$(sed -n 's|.*<version>\(.*\)</version>.*|\1|p' "$pom" | head -1)
  lib=$cache/connect-$version/lib
  need_java
  complete "$lib" "$pom" || need mvn maven
  keep connect "$lib" "$pom" connect_copy "$pom" "$lib"
  echo "connect.lib=$lib"
  echo "connect.plugins=$lib/plugins"
}

connect_copy() {
  maven_copy "$1" "$2" &&
    mkdir -p "$2/plugins/debezium" &&
    mv "$2"/debezium-*.jar "$2"/postgresql-*.jar "$2"/protobuf-java-*.jar "$2/plugins/debezium/"
}

# postgres: the server of the machine. Debian keeps its programs off the path.
postgres() {
  local bin=/usr/lib/postgresql/15/bin
  need "$bin/postgres" postgresql-15
  need "$bin/psql" postgresql-client-15
  echo "postgres.bin=$bin"
}

# tools: programs of the machine that inject faults.
tools() {
  need strace strace
  need bindfs bindfs
  echo "tools.strace=$(command -v strace)"
  echo "tools.bindfs=$(command -v bindfs)"
}

# prometheus: Debian's, with promtool. Its package may start a server of its own: where it was installed for the tests,
# that one is stopped and stays so.
prometheus() {
  if ! command -v promtool >/dev/null; then
    RUNLEVEL=1 need promtool --no-install-recommends prometheus
    if [ -d /run/systemd/system ]; then
      systemctl disable --now prometheus.service >&2 2>/dev/null || true
    elif [ -x /etc/init.d/prometheus ]; then
      /etc/init.d/prometheus stop >&2 2>/dev/null || true
    fi
  fi
  echo "prometheus.server=$(type -P prometheus)"
  echo "prometheus.promtool=$(type -P promtool)"
}

# compose: Debian's docker-compose, which reads compose files without an engine.
compose() {
  need docker-compose --no-install-recommends docker-compose
  echo "compose.program=$(type -P docker-compose)"
}

# buildah: Debian's. It builds images without an engine, and runs programs in them where nothing else does.
buildah_part() {
  need buildah --no-install-recommends buildah
  echo "buildah.program=$(type -P buildah)"
}

part() {
  case $1 in
  tools) tools ;;
  kafka) java_part kafka kafkanode ;;
  connect) connect_part ;;
  paimon) java_part paimon peer ;;
  flink) java_part flink flinksql ;;
  pypaimon | paimon-rust) python_part "$1" ;;
  spark) python_part spark && java_part iceberg "" | sed 's/^iceberg\.lib=/spark.iceberg=/' ;;
  delta) python_part spark-delta | sed 's/^spark-delta\./delta./' && java_part delta "" ;;
  versitygw) go_part versitygw ;;
  prometheus) prometheus ;;
  compose) compose ;;
  buildah) buildah_part ;;
  postgres) postgres ;;
  *) fail "unknown part $1 (tools, kafka, connect, paimon, flink, pypaimon, paimon-rust, versitygw, prometheus, compose, buildah, postgres, spark, delta, all)" ;;
  esac
}

main() {
  need flock util-linux
  mkdir -p "$cache"
  case "${*:-default}" in
  default) set -- tools kafka connect paimon flink pypaimon paimon-rust versitygw prometheus compose buildah spark ;;
  all) set -- tools kafka connect paimon flink pypaimon paimon-rust versitygw prometheus compose buildah postgres spark delta ;;
  esac
  # pip beside Maven: one waits mostly for the network, the other for the disk.
  local p pids=() failed=0
  for p; do
    part "$p" &
    pids+=($!)
  done
  for p in "${pids[@]}"; do wait "$p" || failed=1; done
  return $failed
}

main "$@"
