package wire;

/** The UTF-8 rules of Go's unicode/utf8: no overlong forms, no surrogates, nothing above U+10FFFF. */
final class Utf8 {
  private Utf8() {}

  /** Length of the valid sequence of 2 to 4 bytes at i, or 0. */
  static int length(byte[] s, int i) {
    int c = s[i] & 0xff;
    int len = c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (len == 0 || i + len > s.length) return 0;
    int second = s[i + 1] & 0xff;
    int low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    int high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (second < low || second > high) return 0;
    for (int k = 2; k < len; k++) if ((s[i + k] & 0xC0) != 0x80) return 0;
    return len;
  }
}
