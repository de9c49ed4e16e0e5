// A producer and a reader that note what they do with each record: `Ways BACKSTAGE BOOTSTRAP PLAY...`.
// A PLAY is words `key=value`: topic, count, every_ms, records per commit and per transaction; settings of the
// producer behind p., of the reader behind c. All is played at BACKSTAGE first, until Java has compiled what takes time;
// then, after a line of input, at BOOTSTRAP, with lines `record TOPIC OFFSET TIME...` in microseconds.

import java.time.Duration;
import java.time.Instant;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

public class Ways {
    static final int WARM = 8;
    static final int SENT = 0, ACKNOWLEDGED = 1, POLLS = 2, POLLED = 3, COMMITS = 4, COMMITTED = 5;

    final Map<String, String> play = new HashMap<>();
    final Properties producing = new Properties(), reading = new Properties();
    final Map<Long, long[]> noted = new ConcurrentSkipListMap<>();
    final CountDownLatch ready = new CountDownLatch(1);
    int failed;

    public static void main(String[] args) throws Exception {
        String[] plays = Arrays.copyOfRange(args, 2, args.length);
        for (int n = 0; n < WARM; n++)
            for (String words : plays) new Ways(args[0], words).run();
        System.out.println("ready");
        System.in.read();
        for (String words : plays) {
            Ways ways = new Ways(args[1], words);
            ways.run();
            ways.print();
        }
        System.exit(0);
    }

    Ways(String bootstrap, String words) {
        for (Properties each : List.of(producing, reading)) {
            each.put("bootstrap.servers", bootstrap);
            each.put("enable.metrics.push", "false");
        }
        for (String word : words.split(" ")) {
            String[] both = word.split("=", 2);
            if (both[0].startsWith("p.")) producing.put(both[0].substring(2), both[1]);
            else if (both[0].startsWith("c.")) reading.put(both[0].substring(2), both[1]);
            else play.put(both[0], both[1]);
        }
        String topic = play.get("topic");
        producing.put("client.id", topic + "-shop");
        reading.put("client.id", topic + "-reader");
        reading.put("group.id", topic + "-readers");
        reading.put("auto.offset.reset", "latest");
        reading.put("enable.auto.commit", "false");
    }

    static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }

    int number(String key) { return Integer.parseInt(play.getOrDefault(key, "0")); }

    long[] of(long offset) { return noted.computeIfAbsent(offset, each -> new long[6]); }

    void run() throws Exception {
        ExecutorService beside = Executors.newSingleThreadExecutor();
        Future<?> reader = beside.submit(this::read);
        ready.await(30, TimeUnit.SECONDS);
        send();
        reader.get(30, TimeUnit.SECONDS);
        beside.shutdown();
    }

    void send() throws Exception {
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(producing, new ByteArraySerializer(), new ByteArraySerializer());
        int together = number("transaction");
        producer.partitionsFor(play.get("topic"));
        if (together > 0) producer.initTransactions();
        for (int n = 0; n < number("count"); n++) {
            if (together > 0 && n % together == 0) producer.beginTransaction();
            byte[] value = String.format("%06d", n).repeat(8).getBytes();
            long begin = now();
            producer.send(new ProducerRecord<>(play.get("topic"), value), (where, error) -> {
                long end = now();
                if (error != null) {
                    failed++;
                    return;
                }
                of(where.offset())[SENT] = begin;
                of(where.offset())[ACKNOWLEDGED] = end;
            });
            Thread.sleep(number("every_ms"));
            if (together > 0 && n % together == together - 1) producer.commitTransaction();
        }
        producer.close();
    }

    Void read() {
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(play.get("topic")));
            long until = System.currentTimeMillis() + 25_000;
            while (consumer.assignment().isEmpty() && System.currentTimeMillis() < until) consumer.poll(Duration.ofMillis(50));
            consumer.assignment().forEach(consumer::position);
            ready.countDown();
            List<Long> open = new ArrayList<>();
            int polled = 0;
            while (polled < number("count") && System.currentTimeMillis() < until) {
                long begin = now();
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(500));
                long end = now();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    of(record.offset())[POLLS] = begin;
                    of(record.offset())[POLLED] = end;
                    open.add(record.offset());
                    polled++;
                }
                if (open.size() >= number("commit") || polled == number("count")) commit(consumer, open);
            }
        }
        return null;
    }

    void commit(KafkaConsumer<byte[], byte[]> consumer, List<Long> open) {
        long begin = now();
        consumer.commitSync();
        long end = now();
        for (long offset : open) {
            of(offset)[COMMITS] = begin;
            of(offset)[COMMITTED] = end;
        }
        open.clear();
    }

    void print() {
        noted.forEach((offset, times) -> {
            StringJoiner line = new StringJoiner(" ", "record " + play.get("topic") + " " + offset + " ", "");
            for (long time : times) line.add("" + time);
            System.out.println(line);
        });
        long produced = noted.values().stream().filter(each -> each[SENT] > 0).count();
        long consumed = noted.values().stream().filter(each -> each[POLLED] > 0).count();
        System.out.println("produced=" + produced + "\nfailed=" + failed + "\nconsumed=" + consumed);
    }
}
