package kafkanode;

import java.util.ArrayList;
import java.util.List;

/**
 * Formats a Kafka node's folders when they are new, then runs the node: Kafka's own StorageTool and Kafka
 * mains in one JVM, which saves a JVM start. The process ends when its standard input does, so that a broker
 * cannot outlive the test that started it.
 *
 * <pre>Node server.properties CLUSTER-ID [further arguments of the format command]</pre>
 */
public final class Node {
  private Node() {}

  public static void main(String[] args) throws Exception {
    Thread watch = new Thread(() -> {
      try {
        while (System.in.read() >= 0) {}
      } catch (java.io.IOException e) {
        // as good as its end
      }
      Runtime.getRuntime().halt(3);
    }, "stdin-watch");
    watch.setDaemon(true);
    watch.start();
    List<String> format = new ArrayList<>(List.of("format", "--ignore-formatted", "-t", args[1], "-c", args[0]));
    for (int i = 2; i < args.length; i++) format.add(args[i]);
    int code = kafka.tools.StorageTool.execute(format.toArray(new String[0]), System.out);
    if (code != 0) System.exit(code);
    kafka.Kafka.main(new String[] {args[0]});
  }
}
