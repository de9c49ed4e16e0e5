// A producer and a consumer of any release since 0.10: `Classic BOOTSTRAP TOPIC COUNT [key=value...]`.
// Keys starting with p. go to the producer, c. to the consumer, others to both. Prints what was done.

import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

public class Classic {
    static Properties settings(String kind, String[] args) {
        Properties found = new Properties();
        found.put("bootstrap.servers", args[0]);
        for (int n = 3; n < args.length; n++) {
            String key = args[n].substring(0, args[n].indexOf('='));
            String value = args[n].substring(args[n].indexOf('=') + 1);
            if (key.startsWith(kind)) found.put(key.substring(2), value);
            else if (!key.startsWith("p.") && !key.startsWith("c.")) found.put(key, value);
        }
        String room = "org.apache.kafka.common.serialization.String";
        for (String part : new String[] {"key", "value"}) {
            found.put(part + (kind.equals("p.") ? ".serializer" : ".deserializer"),
                room + (kind.equals("p.") ? "Serializer" : "Deserializer"));
        }
        return found;
    }

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[2]);
        int produced = 0, failed = 0;
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings("p.", args));
        for (int n = 0; n < count; n++) {
            try {
                producer.send(new ProducerRecord<>(args[1], "key " + n, "text that compresses, text that compresses " + n))
                    .get(20, TimeUnit.SECONDS);
                produced++;
            } catch (ExecutionException e) {
                failed++;
                System.out.println("note " + e.getCause().getClass().getSimpleName());
            }
        }
        producer.close();
        System.out.println("produced=" + produced + "\nfailed=" + failed);
        Properties mine = settings("c.", args);
        if (!mine.containsKey("group.id")) return;
        mine.put("auto.offset.reset", "earliest");
        int consumed = 0;
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(mine)) {
            consumer.subscribe(Collections.singletonList(args[1]));
            long end = System.currentTimeMillis() + 20000;
            while (consumed < produced && System.currentTimeMillis() < end) {
                ConsumerRecords<String, String> records = consumer.poll(500);
                consumed += records.count();
            }
            consumer.commitSync();
        }
        System.out.println("consumed=" + consumed);
    }
}
