// A Kafka Streams application that copies orders to receipts: `Streams BOOTSTRAP FOLDER [key=value...]`.

import java.util.Properties;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

public class Streams {
    public static void main(String[] args) throws Exception {
        Properties mine = new Properties();
        mine.put("bootstrap.servers", args[0]);
        mine.put("application.id", "copier");
        mine.put("state.dir", args[1]);
        mine.put("enable.metrics.push", "false");
        mine.put("default.key.serde", Serdes.StringSerde.class.getName());
        mine.put("default.value.serde", Serdes.StringSerde.class.getName());
        mine.put("commit.interval.ms", "500");
        mine.put("consumer.auto.offset.reset", "earliest");
        for (int n = 2; n < args.length; n++)
            mine.put(args[n].substring(0, args[n].indexOf('=')), args[n].substring(args[n].indexOf('=') + 1));
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.stream("orders");
        orders.mapValues(text -> text + "!").to("receipts");
        orders.groupByKey().count();
        KafkaStreams streams = new KafkaStreams(builder.build(), mine);
        streams.start();
        Properties shop = new Properties();
        shop.put("bootstrap.servers", args[0]);
        shop.put("client.id", "shop");
        shop.put("enable.metrics.push", "false");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(shop, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 3; n++) {
                producer.send(new ProducerRecord<>("orders", "key " + n, "order " + n)).get();
                System.out.println("produced=1");
            }
        }
        long end = System.currentTimeMillis() + 15000;
        while (streams.state() != KafkaStreams.State.RUNNING && System.currentTimeMillis() < end) Thread.sleep(100);
        Thread.sleep(4000);
        System.out.println("note state " + streams.state());
        streams.close();
    }
}
