// Clients of any release since 2.0 at work: `Work BOOTSTRAP PLAY [x.key=value...] [key=value...]`.
// What begins with x. is for the play, the rest are the client's settings. The last line is JSON: what was done.

import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class Work {
    static final Properties settings = new Properties();
    static final Map<String, String> play = new HashMap<>();
    static final Map<String, Integer> did = new TreeMap<>();

    static int number(String key, int usual) { return Integer.parseInt(play.getOrDefault(key, "" + usual)); }

    static String text(String key, String usual) { return play.getOrDefault(key, usual); }

    static void count(String what) { did.merge(what, 1, Integer::sum); }

    public static void main(String[] args) throws Exception {
        settings.put("bootstrap.servers", args[0]);
        for (String arg : Arrays.copyOfRange(args, 2, args.length)) {
            int at = arg.indexOf('=');
            String key = arg.substring(0, at), value = arg.substring(at + 1);
            if (key.startsWith("x.")) play.put(key.substring(2), value);
            else settings.put(key, value);
        }
        switch (args[1]) {
            case "produce": produce(); break;
            case "flood": flood(); break;
            case "consume": consume(); break;
            case "transact": transact(); break;
            case "churn": churn(); break;
            case "look": look(); break;
            case "commit": commit(); break;
            case "ensure": ensure(); break;
            default: throw new IllegalArgumentException(args[1]);
        }
        StringJoiner said = new StringJoiner(", ", "{", "}");
        did.forEach((name, times) -> said.add("\"" + name + "\": " + times));
        System.out.println(said);
        System.exit(0);
    }

    static KafkaProducer<String, byte[]> producer() {
        return new KafkaProducer<>(settings, new StringSerializer(), new ByteArraySerializer());
    }

    static ProducerRecord<String, byte[]> record(int n) {
        String key = text("key", "key " + n);
        byte[] value = new byte[number("size", 100)];
        Arrays.fill(value, (byte) 'x');
        return new ProducerRecord<>(text("topic", "orders"), key.isEmpty() ? null : key, value);
    }

    // `count` records, one every so often; each awaited
    static void produce() throws Exception {
        KafkaProducer<String, byte[]> producer = producer();
        for (int n = 0; n < number("count", 20); n++) {
            try {
                producer.send(record(n)).get();
                count("produced");
            } catch (ExecutionException e) {
                count("failed " + e.getCause().getClass().getSimpleName());
            }
            Thread.sleep(number("every_ms", 100));
        }
        producer.close(Duration.ofSeconds(5));
    }

    // `count` records, one every so often; none is awaited
    static void flood() throws Exception {
        KafkaProducer<String, byte[]> producer = producer();
        for (int n = 0; n < number("count", 20); n++) {
            producer.send(record(n), (where, error) -> {
                synchronized (did) {
                    count(error == null ? "produced" : "failed " + error.getClass().getSimpleName());
                }
            });
            Thread.sleep(number("every_ms", 100));
        }
        producer.close(Duration.ofSeconds(20));
    }

    // reads for so long; works so long on what one poll brings, so many times; commits each record, or each poll
    static void consume() throws Exception {
        settings.putIfAbsent("auto.offset.reset", "earliest");
        try (KafkaConsumer<String, byte[]> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new ByteArrayDeserializer())) {
            if (play.containsKey("offset")) {
                TopicPartition place = new TopicPartition(text("topic", "orders"), 0);
                consumer.assign(Collections.singletonList(place));
                consumer.seek(place, number("offset", 0));
            } else consumer.subscribe(Arrays.asList(text("topic", "orders").split(",")));
            int left = number("times", 1000);
            long end = System.currentTimeMillis() + number("seconds", 10) * 1000L;
            while (System.currentTimeMillis() < end) {
                try {
                    ConsumerRecords<String, byte[]> records = consumer.poll(Duration.ofMillis(100));
                    for (ConsumerRecord<String, byte[]> record : records) {
                        count("consumed");
                        if (!text("commit", "").equals("each")) continue;
                        consumer.commitSync(Collections.singletonMap(
                            new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1)));
                        count("committed");
                    }
                    if (!records.isEmpty() && text("commit", "").equals("poll")) {
                        consumer.commitSync();
                        count("committed");
                    }
                    if (!records.isEmpty() && left-- > 0) Thread.sleep(number("work_ms", 0));
                } catch (KafkaException e) {
                    count("failed " + e.getClass().getSimpleName());
                    Thread.sleep(number("pause_ms", 1000));
                }
            }
            if (text("leave", "yes").equals("no")) Runtime.getRuntime().halt(0);
        } catch (KafkaException e) {
            count("failed " + e.getClass().getSimpleName());
        }
    }

    // transactions of `records` records; the application works inside and after each
    static void transact() throws Exception {
        KafkaProducer<String, byte[]> producer = producer();
        try {
            producer.initTransactions();
            for (int n = 0; n < number("count", 3); n++) {
                producer.beginTransaction();
                for (int m = 0; m < number("records", 2); m++) producer.send(record(m)).get();
                Thread.sleep(number("work_ms", 0));
                if (text("ending", "commit").equals("abort")) producer.abortTransaction();
                else producer.commitTransaction();
                count("committed");
                Thread.sleep(number("every_ms", 0));
            }
        } catch (KafkaException | ExecutionException e) {
            count("failed " + e.getClass().getSimpleName());
        }
        producer.close(Duration.ofSeconds(1));
    }

    // a producer for every record
    static void churn() throws Exception {
        for (int n = 0; n < number("count", 20); n++) {
            KafkaProducer<String, byte[]> producer = producer();
            producer.send(record(n)).get();
            producer.close();
            count("produced");
            Thread.sleep(number("every_ms", 100));
        }
    }

    // assigns itself a partition and commits into a group that others are members of
    static void commit() throws Exception {
        settings.put("enable.auto.commit", "false");
        TopicPartition place = new TopicPartition(text("topic", "orders"), number("partition", 0));
        try (KafkaConsumer<String, byte[]> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(Collections.singletonList(place));
            for (int n = 0; n < number("count", 10); n++) {
                consumer.poll(Duration.ofMillis(50));
                try {
                    consumer.commitSync(Collections.singletonMap(place, new OffsetAndMetadata(n)));
                    count("committed");
                } catch (KafkaException e) {
                    count("failed " + e.getClass().getSimpleName());
                }
                Thread.sleep(number("every_ms", 300));
            }
        }
    }

    // creates topics that may be there already, as applications do when they begin
    static void ensure() throws Exception {
        try (AdminClient admin = AdminClient.create(settings)) {
            for (int n = 0; n < number("count", 1); n++) {
                for (String topic : text("topic", "orders").split(",")) {
                    NewTopic wanted = new NewTopic(topic, number("partitions", 1), (short) number("copies", 1));
                    long begin = System.currentTimeMillis();
                    try {
                        admin.createTopics(Collections.singletonList(wanted)).all().get();
                        count("created");
                    } catch (ExecutionException e) {
                        count("failed " + e.getCause().getClass().getSimpleName());
                    }
                    did.merge("ms", (int) (System.currentTimeMillis() - begin), Integer::sum);
                }
                Thread.sleep(number("every_ms", 0));
            }
        }
    }

    // an administrator who looks at all topics again and again
    static void look() throws Exception {
        try (AdminClient admin = AdminClient.create(settings)) {
            for (int n = 0; n < number("count", 50); n++) {
                admin.listTopics().names().get();
                count("looked");
                Thread.sleep(number("every_ms", 50));
            }
        }
    }
}
