// KafkaJS: produces five records, reads them in a group. `node client.js BOOTSTRAP`

const { Kafka, logLevel } = require("kafkajs");

async function talk() {
  const kafka = new Kafka({ clientId: "js-shop", brokers: [process.argv[2]], logLevel: logLevel.NOTHING });
  // what it measures: whole milliseconds; `size` is that of the answer without its own size
  const told = ({ payload: p }) => console.log("request " + JSON.stringify({ software: "KafkaJS", client_id: p.clientId, api_key: p.apiKey,
    api_version: p.apiVersion, correlation_id: p.correlationId, took_us: p.duration * 1000, resolution_us: 1000,
    response_bytes: p.size + 4 }));
  const producer = kafka.producer();
  producer.on(producer.events.REQUEST, told);
  await producer.connect();
  for (let n = 0; n < 5; n++) {
    await producer.send({ topic: "orders", messages: [{ key: `key ${n}`, value: `js ${n}` }] });
    console.log("produced=1");
  }
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "billing", maxWaitTimeInMs: 500 });
  consumer.on(consumer.events.REQUEST, told);
  await consumer.connect();
  await consumer.subscribe({ topic: "orders", fromBeginning: true });
  let count = 0;
  await new Promise((resolve) =>
    consumer.run({
      eachMessage: async () => {
        console.log("consumed=1");
        if (++count === 5) resolve();
      },
    }),
  );
  await consumer.disconnect();
}

talk().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
