// KafkaJS at work: `node work.js BOOTSTRAP PLAY [key=value...]`. The last line is JSON: what was done.

const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, play, ...words] = process.argv.slice(2);
const said = Object.fromEntries(words.map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
const number = (key, usual) => Number(said[key] ?? usual);
const text = (key, usual) => said[key] ?? usual;
const did = {};
const count = (what) => { did[what] = (did[what] ?? 0) + 1; };
const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const topic = text("topic", "orders");

function kafka() {
  const sasl = said.user && { mechanism: text("mechanism", "plain"), username: said.user, password: said.password };
  const file = (key) => said[key] && require("fs").readFileSync(said[key], "utf8");
  const ssl = (said.tls || said.ca) && { rejectUnauthorized: Boolean(said.ca), ca: file("ca"), cert: file("cert"), key: file("secret") };
  const retry = { retries: number("retries", 5), initialRetryTime: 300 };
  return new Kafka({ clientId: text("client_id", "js-shop"), brokers: bootstrap.split(","), logLevel: logLevel.NOTHING, sasl, ssl, retry,
    requestTimeout: number("request_timeout_ms", 30000), connectionTimeout: 2000 });
}

const record = (n) => ({ key: text("key", `key ${n}`), value: "x".repeat(number("size", 100)) });

// `count` records, one every so often; each awaited
async function produce() {
  const producer = kafka().producer({ allowAutoTopicCreation: false });
  await producer.connect();
  for (let n = 0; n < number("count", 20); n++) {
    try {
      await producer.send({ topic, acks: number("acks", -1), messages: [record(n)] });
      count("produced");
    } catch (error) {
      count(`failed ${error.name}`);
    }
    await rest(number("every_ms", 100));
  }
  await producer.disconnect();
}

// reads for so long; works so long on each record
async function consume() {
  const consumer = kafka().consumer({ groupId: text("group", "js-billing"), maxWaitTimeInMs: number("max_wait_ms", 700),
    sessionTimeout: number("session_ms", 10000), heartbeatInterval: number("heartbeat_ms", 1000), allowAutoTopicCreation: false });
  await consumer.connect();
  await consumer.subscribe({ topics: topic.split(","), fromBeginning: true });
  const often = said.commit_each ? { autoCommitThreshold: 1 } : { autoCommitInterval: 500 };
  await consumer.run({ ...often, eachMessage: async () => {
    count("consumed");
    await rest(number("work_ms", 0));
  } });
  await rest(number("seconds", 10) * 1000);
  await consumer.disconnect();
}

// a producer for every record
async function churn() {
  for (let n = 0; n < number("count", 20); n++) {
    const producer = kafka().producer();
    await producer.connect();
    await producer.send({ topic, messages: [record(n)] });
    await producer.disconnect();
    count("produced");
    await rest(number("every_ms", 100));
  }
}

// an administrator who looks at all topics again and again
async function look() {
  const admin = kafka().admin();
  await admin.connect();
  for (let n = 0; n < number("count", 50); n++) {
    await admin.fetchTopicMetadata();
    count("looked");
    await rest(number("every_ms", 50));
  }
  await admin.disconnect();
}

// transactions of one record, in each of which the application works so long
async function transact() {
  const producer = kafka().producer({ transactionalId: text("transactional_id", "tx-js"), maxInFlightRequests: 1, idempotent: true,
    transactionTimeout: number("transaction_timeout_ms", 60000) });
  await producer.connect();
  for (let n = 0; n < number("count", 3); n++) {
    const transaction = await producer.transaction();
    await transaction.send({ topic, messages: [record(n)] });
    await rest(number("work_ms", 0));
    await transaction.commit();
    count("committed");
    await rest(number("every_ms", 100));
  }
  await producer.disconnect();
}

// creates topics that may be there already
async function ensure() {
  const admin = kafka().admin();
  await admin.connect();
  for (let n = 0; n < number("count", 1); n++) {
    for (const name of topic.split(","))
      count(await admin.createTopics({ topics: [{ topic: name, numPartitions: 1, replicationFactor: 1 }] }) ? "created" : "there");
    await rest(number("every_ms", 0));
  }
  await admin.disconnect();
}

function end(code) {
  console.log(JSON.stringify(did));
  process.exit(code);
}

setTimeout(() => end(0), 60000);
({ produce, consume, churn, look, transact, ensure })[play]().then(() => end(0), (error) => { count(`failed ${error.name}`); end(0); });
