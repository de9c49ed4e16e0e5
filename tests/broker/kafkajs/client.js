// KafkaJS: produces five records, reads them in a group. `node client.js BOOTSTRAP`

const { Kafka, logLevel } = require("kafkajs");

async function talk() {
  const kafka = new Kafka({ clientId: "js-shop", brokers: [process.argv[2]], logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  for (let n = 0; n < 5; n++) {
    await producer.send({ topic: "orders", messages: [{ key: `key ${n}`, value: `js ${n}` }] });
    console.log("produced=1");
  }
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "billing", maxWaitTimeInMs: 500 });
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
