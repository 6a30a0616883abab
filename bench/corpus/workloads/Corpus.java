// Fills a Java heap: records in maps and lists, strings, boxed and plain numbers, a word index.
// Usage: java Corpus.java MEBIBYTES; prints "ready" and waits.
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

public class Corpus {
  record Item(String sku, int count, double price) {}

  record Order(long id, String customer, List<Item> items, boolean paid) {}

  static final String[] WORDS =
      ("page swap cache store load free slot table object class lock memory pool unit codec run "
              + "area entry cluster folio order zero cold tier batch group epoch source frame")
          .split(" ");

  static String sentence(Random random) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < 5 + random.nextInt(20); i++) {
      text.append(WORDS[random.nextInt(WORDS.length)]).append(i % 7 == 6 ? ". " : " ");
    }
    return text.append(random.nextInt(100000)).toString();
  }

  static Order order(Random random) {
    List<Item> items = new ArrayList<>();
    for (int i = 0; i < 1 + random.nextInt(4); i++) {
      items.add(new Item("SKU-" + random.nextInt(99999), random.nextInt(9), random.nextInt(10000) / 100.0));
    }
    return new Order(random.nextLong() >>> 20, "customer " + random.nextInt(5000), items, random.nextBoolean());
  }

  static void step(Random random, List<Object> kept) {
    Map<Long, Order> orders = new HashMap<>();
    Map<String, List<Integer>> index = new TreeMap<>();
    for (int i = 0; i < 500; i++) {
      Order order = order(random);
      orders.put(order.id(), order);
      index.computeIfAbsent(order.customer(), name -> new ArrayList<>()).add(i);
    }
    Map<String, byte[]> documents = new LinkedHashMap<>();
    for (int i = 0; i < 100; i++) {
      documents.put("document " + random.nextInt(), sentence(random).getBytes(StandardCharsets.UTF_8));
    }
    ArrayDeque<Integer> queue = new ArrayDeque<>();
    for (int i = 0; i < 1000; i++) queue.add(random.nextInt(100000));
    int[] numbers = random.ints(2000, 0, 1 << 20).toArray();
    byte[] opaque = new byte[8000];
    random.nextBytes(opaque);
    long[] sparse = new long[4096];
    for (int i = 0; i < 150; i++) sparse[random.nextInt(4096)] = random.nextInt(1 << 20);
    kept.addAll(List.of(orders, index, documents, queue, numbers, opaque, sparse));
    for (int i = 0; i < 200; i++) kept.add(sentence(random));
    // A heap that has lived: holes, and what was in them.
    for (int i = 0; i < 20; i++) kept.set(random.nextInt(kept.size()), "");
  }

  public static void main(String[] arguments) throws Exception {
    // Classes, compiled code and free parts of a small heap take 70 MiB besides.
    long target = (Math.max(Long.parseLong(arguments[0]) - 70, 0) * 3 / 2 + 20) << 20;
    Runtime runtime = Runtime.getRuntime();
    Random random = new Random(12345);
    List<Object> kept = new ArrayList<>();
    while (runtime.totalMemory() - runtime.freeMemory() < target) step(random, kept);
    System.out.println("ready");
    Thread.sleep(Long.MAX_VALUE);
  }
}
