package wire;

import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.util.Arrays;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.core.io.schubfach.DoubleToDecimal;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.core.io.schubfach.FloatToDecimal;

/**
 * A reused byte buffer with the value texts of {@code applier cat --format jsonl}: the same bytes as Go's
 * types.AppendJSON, so that rows of every judge compare as text and as digests.
 */
public final class Text {
  private static final byte[] HEX = "0123456789abcdef".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] REPLACEMENT = {(byte) 0xEF, (byte) 0xBF, (byte) 0xBD};
  private static final long NANOS_PER_SECOND = 1_000_000_000L;

  byte[] b = new byte[256];
  int n;

  public void clear() {
    n = 0;
  }

  @Override
  public String toString() {
    return new String(b, 0, n, StandardCharsets.UTF_8);
  }

  public Text put(char c) {
    room(1);
    b[n++] = (byte) c;
    return this;
  }

  /** Appends ASCII text. */
  public Text ascii(String s) {
    room(s.length());
    for (int i = 0; i < s.length(); i++) b[n++] = (byte) s.charAt(i);
    return this;
  }

  private void room(int more) {
    if (n + more > b.length) b = Arrays.copyOf(b, Math.max(b.length * 2, n + more));
  }

  public void num(long v) {
    ascii(Long.toString(v));
  }

  private void digits(long v, int width) {
    room(width);
    for (int i = n + width - 1; i >= n; i--, v /= 10) b[i] = (byte) ('0' + v % 10);
    n += width;
  }

  /** A JSON string of UTF-8 bytes; each byte that is not part of a valid sequence becomes U+FFFD, as in Go. */
  public void string(byte[] s) {
    put('"');
    for (int i = 0; i < s.length; ) {
      int c = s[i] & 0xff;
      int len = 1;
      if (c == '"' || c == '\\') put('\\').put((char) c);
      else if (c == '\n') ascii("\\n");
      else if (c == '\r') ascii("\\r");
      else if (c == '\t') ascii("\\t");
      else if (c < 0x20) ascii("\\u00").put((char) HEX[c >> 4]).put((char) HEX[c & 15]);
      else if (c < 0x80) put((char) c);
      else if ((len = Utf8.length(s, i)) > 0) bytes(s, i, len);
      else {
        len = 1;
        bytes(REPLACEMENT, 0, 3);
      }
      i += len;
    }
    put('"');
  }

  public void string(String s) {
    string(s.getBytes(StandardCharsets.UTF_8));
  }

  public void bytes(byte[] s) {
    bytes(s, 0, s.length);
  }

  public byte[] toBytes() {
    return Arrays.copyOf(b, n);
  }

  /** An unscaled number of a decimal, as plain digits with the point set. */
  public void decimal(long unscaled, int scale) {
    if (unscaled < 0) put('-');
    long v = Math.abs(unscaled);
    long unit = 1;
    for (int i = 0; i < scale; i++) unit *= 10;
    num(v / unit);
    if (scale > 0) put('.').digits(v % unit, scale);
  }

  private void bytes(byte[] s, int from, int len) {
    room(len);
    System.arraycopy(s, from, b, n, len);
    n += len;
  }

  /** Bytes as a quoted text of hex digits. */
  public void hex(byte[] s) {
    put('"');
    for (byte x : s) put((char) HEX[(x >> 4) & 15]).put((char) HEX[x & 15]);
    put('"');
  }

  public void dbl(double d) {
    if (special(d)) return;
    if (d == (long) d && Math.abs(d) < 1e15 && !(d == 0 && 1 / d < 0)) num((long) d);
    else if (plain(d)) ascii(DoubleToDecimal.toString(d));
    else ascii(Floats.layout(DoubleToDecimal.toString(d), Math.abs(d), t -> Double.parseDouble(t) == d));
  }

  /** Of the two shortest texts that are equally close to 2^-12, Go takes the other one. */
  public void flt(float f) {
    if (special(f)) return;
    if (Math.abs(f) == 0x1p-12f) {
      ascii(f < 0 ? "-0.00024414063" : "0.00024414063");
      return;
    }
    if (f == (long) f && Math.abs(f) < 1 << 24 && !(f == 0 && 1 / f < 0)) num((long) f);
    else if (plain(f)) ascii(FloatToDecimal.toString(f));
    else ascii(Floats.layout(FloatToDecimal.toString(f), Math.abs((double) f), t -> Float.parseFloat(t) == f));
  }

  /** Here Java writes plain digits, and the same ones as Go. Whole numbers are not asked for. */
  private static boolean plain(double d) {
    double a = Math.abs(d);
    return a >= 1e-3 && a < 1e7;
  }

  private boolean special(double d) {
    if (Double.isNaN(d)) ascii("\"NaN\"");
    else if (Double.isInfinite(d)) ascii(d > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    else return false;
    return true;
  }

  /** A quoted ISO date; years outside 0 to 9999 carry a sign. */
  public void date(long days) {
    put('"');
    day(days);
    put('"');
  }

  private void day(long days) {
    LocalDate d = LocalDate.ofEpochDay(days);
    int y = d.getYear();
    if (y > 9999) put('+').num(y);
    else {
      if (y < 0) put('-');
      y = Math.abs(y);
      if (y > 9999) num(y);
      else digits(y, 4);
    }
    put('-').digits(d.getMonthValue(), 2);
    put('-').digits(d.getDayOfMonth(), 2);
  }

  /** A quoted time of day with precision fraction digits. */
  public void time(long nanos, int precision) {
    put('"');
    clock(nanos, precision);
    put('"');
  }

  private void clock(long nanos, int precision) {
    long s = nanos / NANOS_PER_SECOND;
    digits(s / 3600, 2);
    put(':').digits(s / 60 % 60, 2);
    put(':').digits(s % 60, 2);
    if (precision == 0) return;
    long frac = nanos % NANOS_PER_SECOND;
    for (int i = precision; i < 9; i++) frac /= 10;
    put('.').digits(frac, precision);
  }

  /** A quoted timestamp with precision fraction digits, with a Z when it is in UTC. */
  public void timestamp(long millis, int nanosOfMilli, int precision, boolean utc) {
    long days = Math.floorDiv(millis, 86_400_000L);
    put('"');
    day(days);
    put('T');
    clock((millis - days * 86_400_000L) * 1_000_000 + nanosOfMilli, precision);
    if (utc) put('Z');
    put('"');
  }
}
