package wire;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.function.Predicate;

/**
 * Turns Java's shortest decimal ("1.0E-7", at least two digits) into Go's: plain digits between 1e-6 and
 * 1e21, else d.ddde±xx with two exponent digits or more.
 */
final class Floats {
  private Floats() {}

  /** abs is the value without sign: it alone decides the layout, so that a FLOAT of 1e-6 gets an exponent as in Go. */
  static String layout(String java, double abs, Predicate<String> readsBackTheSame) {
    boolean negative = java.charAt(0) == '-';
    BigDecimal v = new BigDecimal(negative ? java.substring(1) : java);
    if (v.signum() == 0) return negative ? "-0" : "0";
    v = v.stripTrailingZeros();
    if (v.precision() == 2) {
      // Java never writes one digit where a second one comes closer (4.9E-324); Go writes the shortest, 5e-324.
      BigDecimal one = v.round(new MathContext(1, RoundingMode.HALF_EVEN));
      if (readsBackTheSame.test((negative ? "-" : "") + one)) v = one.stripTrailingZeros();
    }
    if (abs >= 1e-6 && abs < 1e21) return (negative ? "-" : "") + v.toPlainString();
    int exponent = v.precision() - v.scale() - 1;
    String digits = v.unscaledValue().toString();
    StringBuilder b = new StringBuilder(negative ? "-" : "").append(digits.charAt(0));
    if (digits.length() > 1) b.append('.').append(digits, 1, digits.length());
    b.append('e').append(exponent < 0 ? '-' : '+');
    if (Math.abs(exponent) < 10) b.append('0');
    return b.append(Math.abs(exponent)).toString();
  }
}
