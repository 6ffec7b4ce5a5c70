import java.io.*;
import java.util.function.LongPredicate;
import org.apache.paimon.deletionvectors.*;

/**
 * Wrote java-vectors.txt with Paimon's own classes (paimon-bundle 1.4.2): name, width, what
 * serializeTo returned (the length of the meta), blob in hex.
 */
public class JavaVectors {
  static void v(String name, long max, LongPredicate p) throws IOException {
    for (DeletionVector dv : new DeletionVector[] {new BitmapDeletionVector(), new Bitmap64DeletionVector()}) {
      try {
        for (long i = 0; i <= max; i++) if (p.test(i)) dv.delete(i);
      } catch (IllegalArgumentException e) { continue; }
      print(name, dv);
    }
  }

  static void print(String name, DeletionVector dv) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int n = dv.serializeTo(new DataOutputStream(out));
    StringBuilder hex = new StringBuilder();
    for (byte b : out.toByteArray()) hex.append(String.format("%02x", b));
    System.out.println(name + " " + (dv instanceof BitmapDeletionVector ? 32 : 64) + " " + n + " " + hex);
  }

  public static void main(String[] a) throws IOException {
    v("empty", -1, i -> false);
    v("one_three_five", 5, i -> i % 2 == 1);
    v("run_0_9", 9, i -> true);
    v("runs", 3000, i -> i % 100 < 40);
    v("array", 20000, i -> i % 7 == 3);
    v("bitmap", 9999, i -> i % 2 == 0);
    v("full_and_more", 65600, i -> i < 65540 || i == 65600);
    v("mixed", 200000, i -> i < 70000 ? i % 3 == 0 : i < 140000 ? i % 1000 == 0 : i % 5000 < 2500);
    DeletionVector big = new BitmapDeletionVector();
    big.delete(0); big.delete(Integer.MAX_VALUE - 1); big.delete(Integer.MAX_VALUE);
    print("max_position", big);
    DeletionVector high = new Bitmap64DeletionVector();
    high.delete(1L << 32);
    print("high_key_only", high);
    high.delete(7);
    print("high_key", high);
    DeletionVector top = new Bitmap64DeletionVector();
    top.delete((1L << 32) - 1);
    print("max_uint32", top);
  }
}
