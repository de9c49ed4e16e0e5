// Clients of today: `Clients BOOTSTRAP PLAY [key=value...]`. Prints what was done.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

public class Clients {
    static String[] args;

    static Properties settings(String... more) {
        Properties found = new Properties();
        found.put("bootstrap.servers", args[0]);
        found.put("enable.metrics.push", "false");
        for (String arg : more) put(found, arg);
        for (String arg : Arrays.copyOfRange(args, 2, args.length)) put(found, arg);
        return found;
    }

    static void put(Properties found, String arg) {
        int at = arg.indexOf('=');
        found.put(arg.substring(0, at), arg.substring(at + 1));
    }

    static KafkaProducer<String, String> producer(String... more) {
        return new KafkaProducer<>(settings(more), new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String... more) {
        return new KafkaConsumer<>(settings(more), new StringDeserializer(), new StringDeserializer());
    }

    static void send(KafkaProducer<String, String> producer, String topic, int count) throws Exception {
        for (int n = 0; n < count; n++) {
            try {
                producer.send(new ProducerRecord<>(topic, n % 3 == 2 ? null : "key " + n, "order " + n))
                    .get(20, TimeUnit.SECONDS);
                System.out.println("produced=1");
            } catch (ExecutionException e) {
                System.out.println("failed=1\nnote " + e.getCause().getClass().getSimpleName());
            }
        }
    }

    static int read(Consumer<String, String> consumer, int wanted) {
        long end = System.currentTimeMillis() + 20000;
        int count = 0;
        while (count < wanted && System.currentTimeMillis() < end) count += consumer.poll(Duration.ofMillis(300)).count();
        System.out.println("consumed=" + count);
        return count;
    }

    public static void main(String[] given) throws Exception {
        args = given;
        switch (args[1]) {
            case "transactions": transactions(); break;
            case "group": group(); break;
            case "share": share(); break;
            case "telemetry": telemetry(); break;
            case "fenced": fenced(); break;
            case "slow": slow(); break;
            default: throw new IllegalArgumentException(args[1]);
        }
    }

    // reads, writes and commits offsets in one transaction; then one that is aborted; leaves a third open
    static void transactions() throws Exception {
        try (KafkaProducer<String, String> first = producer("client.id=till")) { send(first, "orders", 5); }
        KafkaProducer<String, String> till = producer("client.id=till-7", "transactional.id=till-7");
        till.initTransactions();
        try (KafkaConsumer<String, String> consumer = consumer("client.id=accounts", "group.id=accounts",
                "auto.offset.reset=earliest", "enable.auto.commit=false")) {
            consumer.subscribe(List.of("orders"));
            read(consumer, 5);
            till.beginTransaction();
            send(till, "receipts", 2);
            Map<TopicPartition, OffsetAndMetadata> at = new HashMap<>();
            at.put(new TopicPartition("orders", 0), new OffsetAndMetadata(5));
            till.sendOffsetsToTransaction(at, consumer.groupMetadata());
            till.commitTransaction();
        }
        till.beginTransaction();
        send(till, "receipts", 1);
        till.abortTransaction();
        till.beginTransaction();
        send(till, "orders", 1);
        try (KafkaConsumer<String, String> auditor = consumer("client.id=auditor", "isolation.level=read_committed",
                "auto.offset.reset=earliest")) {
            auditor.assign(List.of(new TopicPartition("receipts", 0)));
            read(auditor, 2);
        }
        till.commitTransaction();
        till.close();
    }

    // a producer whose successor has come
    static void fenced() throws Exception {
        KafkaProducer<String, String> old = producer("client.id=old", "transactional.id=till-8");
        old.initTransactions();
        old.beginTransaction();
        send(old, "receipts", 1);
        KafkaProducer<String, String> young = producer("client.id=young", "transactional.id=till-8");
        young.initTransactions();
        try {
            send(old, "receipts", 1);
            old.commitTransaction();
        } catch (RuntimeException e) {
            System.out.println("note " + e.getClass().getSimpleName());
        }
        old.close(Duration.ofSeconds(1));
        young.close();
    }

    // sends for longer than the broker trusts a login
    static void slow() throws Exception {
        try (KafkaProducer<String, String> shop = producer("client.id=shop")) {
            for (int n = 0; n < 8; n++) {
                send(shop, "orders", 1);
                Thread.sleep(600);
            }
        }
    }

    static void group() throws Exception {
        try (KafkaProducer<String, String> first = producer("client.id=shop")) { send(first, "orders", 6); }
        String[] common = {"group.id=billing", "auto.offset.reset=earliest"};
        KafkaConsumer<String, String> one = consumer(join(common, "client.id=billing-1", "group.instance.id=one"));
        one.subscribe(List.of("orders"));
        read(one, 6);
        one.commitSync();
        KafkaConsumer<String, String> two = consumer(join(common, "client.id=billing-2", "group.instance.id=two"));
        two.subscribe(List.of("orders"));
        long end = System.currentTimeMillis() + 15000;
        while (System.currentTimeMillis() < end && two.assignment().isEmpty()) {
            one.poll(Duration.ofMillis(100));
            two.poll(Duration.ofMillis(100));
        }
        System.out.println("partitions_of_two=" + two.assignment().size());
        two.close();
        one.poll(Duration.ofMillis(100));
        one.close();
    }

    static String[] join(String[] first, String... second) {
        String[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    static void share() throws Exception {
        try (KafkaProducer<String, String> first = producer("client.id=shop")) { send(first, "orders", 6); }
        Properties mine = settings("client.id=packer", "group.id=packers", "share.acknowledgement.mode=explicit");
        try (KafkaShareConsumer<String, String> packer =
                new KafkaShareConsumer<>(mine, new StringDeserializer(), new StringDeserializer())) {
            packer.subscribe(List.of("orders"));
            long end = System.currentTimeMillis() + 20000;
            int accepted = 0;
            boolean released = false;
            while (accepted < 6 && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> record : packer.poll(Duration.ofMillis(300))) {
                    if (!released) {
                        packer.acknowledge(record, AcknowledgeType.RELEASE);
                        released = true;
                    } else {
                        packer.acknowledge(record, AcknowledgeType.ACCEPT);
                        accepted++;
                    }
                }
                packer.commitSync();
            }
            System.out.println("consumed=" + accepted);
        }
    }

    static void telemetry() throws Exception {
        Properties mine = settings("client.id=shop");
        mine.put("enable.metrics.push", "true");
        try (KafkaProducer<String, String> shop = new KafkaProducer<>(mine, new StringSerializer(), new StringSerializer())) {
            send(shop, "orders", 2);
            Thread.sleep(3500);
            send(shop, "orders", 1);
        }
    }
}
