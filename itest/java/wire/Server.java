package wire;

import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileDescriptor;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The line protocol: one JSON request a line on standard input, {"id":n,"cmd":"…",…}; one JSON response a
 * line on standard output, {"id":n,"ok":true,…} or {"id":n,"ok":false,"error":class,"message":…}. Requests
 * run side by side when threads > 1; responses come in the order they finish. The process ends when its
 * standard input does, so it cannot outlive the test that started it.
 */
public final class Server {
  /** Carries out one command; what it returns is merged into the response. */
  public interface Handler {
    Map<String, Object> handle(String cmd, Args args) throws Throwable;
  }

  private static final long MAX_STACK_LINES = 12;

  private Server() {}

  /** Keeps standard output for responses alone: what libraries print goes to standard error. */
  public static PrintStream takeStdout() {
    PrintStream out = new PrintStream(new java.io.FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    return out;
  }

  /** Serves until standard input ends, then ends the process. */
  public static void serve(PrintStream out, Map<String, Object> hello, int threads, Handler handler) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads, r -> {
      Thread t = new Thread(r, "request");
      t.setDaemon(true);
      return t;
    });
    Map<String, Object> first = new LinkedHashMap<>();
    first.put("id", 0);
    first.put("ok", true);
    first.putAll(hello);
    send(out, first);
    BufferedReader in = new BufferedReader(
        new InputStreamReader(new FileInputStream(FileDescriptor.in), StandardCharsets.UTF_8), 1 << 16);
    for (String line; (line = in.readLine()) != null; ) {
      String request = line;
      if (!request.isBlank()) pool.execute(() -> send(out, answer(request, handler)));
    }
    Runtime.getRuntime().halt(0);
  }

  private static Map<String, Object> answer(String line, Handler handler) {
    Map<String, Object> r = new LinkedHashMap<>();
    Object id = null;
    try {
      Args args = Args.of(Json.parse(line));
      id = args.get("id");
      r.put("id", id);
      r.put("ok", true);
      r.putAll(handler.handle(args.str("cmd"), args));
    } catch (Throwable e) {
      r.clear();
      r.put("id", id);
      r.put("ok", false);
      describe(r, e);
    }
    return r;
  }

  /** Names the innermost cause, keeps the messages of the whole chain and the first stack lines. */
  private static void describe(Map<String, Object> r, Throwable e) {
    Throwable root = e;
    StringBuilder message = new StringBuilder();
    for (Throwable x = e; x != null; x = x.getCause()) {
      root = x;
      if (message.length() > 0) message.append(" <- ");
      message.append(x.getClass().getSimpleName()).append(": ").append(x.getMessage());
    }
    List<String> stack = new ArrayList<>();
    for (StackTraceElement s : root.getStackTrace()) if (stack.size() < MAX_STACK_LINES) stack.add(s.toString());
    r.put("error", root.getClass().getSimpleName());
    r.put("message", message.toString());
    r.put("stack", stack);
  }

  private static void send(PrintStream out, Map<String, Object> response) {
    byte[] b = (Json.write(response) + "\n").getBytes(StandardCharsets.UTF_8);
    synchronized (out) {
      out.write(b, 0, b.length);
      out.flush();
    }
  }
}
