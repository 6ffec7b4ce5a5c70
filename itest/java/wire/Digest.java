package wire;

import org.apache.paimon.shade.net.openhft.hashing.LongHashFunction;

/** Order-independent digest of rows: their number and the sum modulo 2^64 of the XXH64 of each row's text. */
public final class Digest {
  private static final LongHashFunction XX = LongHashFunction.xx();

  private long rows;
  private long sum;

  public void add(Text row) {
    rows++;
    sum += XX.hashBytes(row.b, 0, row.n);
  }

  public long rows() {
    return rows;
  }

  public String hex() {
    return String.format("%016x", sum);
  }
}
