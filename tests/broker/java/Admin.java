// What an administrator does: `Admin BOOTSTRAP TOUR [key=value...]`. Errors are part of some tours and are printed.

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

public class Admin {
    interface Act { KafkaFuture<?> begin() throws Exception; }

    static org.apache.kafka.clients.admin.Admin admin;
    static Properties settings = new Properties();

    static Object step(String name, Act act) throws Exception {
        try {
            return act.begin().get(20, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            System.out.println("note " + name + ": " + e.getCause().getClass().getSimpleName());
            System.out.println("errors=1");
            return null;
        }
    }

    public static void main(String[] args) throws Exception {
        settings.put("bootstrap.servers", args[0]);
        settings.put("client.id", "office");
        settings.put("enable.metrics.push", "false");
        String[] more = {};
        for (String arg : Arrays.copyOfRange(args, 2, args.length)) {
            int at = arg.indexOf('=');
            if (at > 0) settings.put(arg.substring(0, at), arg.substring(at + 1));
            else { more = Arrays.copyOf(more, more.length + 1); more[more.length - 1] = arg; }
        }
        admin = org.apache.kafka.clients.admin.Admin.create(settings);
        switch (args[1]) {
            case "topics": topics(); break;
            case "configs": configs(); break;
            case "groups": groups(more[0]); break;
            case "share": share(more[0]); break;
            case "streams": streams(more[0]); break;
            case "access": access(); break;
            case "tokens": tokens(); break;
            case "transactions": transactions(more); break;
            case "create": create(more); break;
            case "move": move(more); break;
            case "quorum": quorum(more); break;
            case "quota": quota(more); break;
            case "compact": set(ConfigResource.Type.TOPIC, more[0], "cleanup.policy", "compact"); break;
            case "share-from-start": set(ConfigResource.Type.GROUP, more[0], "share.auto.offset.reset", "earliest"); break;
            case "metrics":
                set(ConfigResource.Type.CLIENT_METRICS, "all", "interval.ms", "1000");
                set(ConfigResource.Type.CLIENT_METRICS, "all", "metrics", "org.apache.kafka.producer.record");
                break;
            default: throw new IllegalArgumentException(args[1]);
        }
        admin.close();
    }

    static void topics() throws Exception {
        step("create", () -> admin.createTopics(List.of(
            new NewTopic("orders", 2, (short) 1).configs(Map.of("retention.ms", "3600000")),
            new NewTopic("parcels", 1, (short) 1))).all());
        step("create again", () -> admin.createTopics(List.of(new NewTopic("orders", 2, (short) 1))).all());
        step("create with too many copies", () -> admin.createTopics(List.of(new NewTopic("many", 1, (short) 5))).all());
        step("create with a bad name", () -> admin.createTopics(List.of(new NewTopic("a b", 1, (short) 1))).all());
        step("list", () -> admin.listTopics().listings());
        step("describe", () -> admin.describeTopics(List.of("orders", "parcels")).allTopicNames());
        step("describe what is not there", () -> admin.describeTopics(List.of("ordres")).allTopicNames());
        step("partitions", () -> admin.createPartitions(Map.of("orders", NewPartitions.increaseTo(3))).all());
        step("fewer partitions", () -> admin.createPartitions(Map.of("orders", NewPartitions.increaseTo(1))).all());
        TopicPartition first = new TopicPartition("orders", 0);
        step("offsets", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest())).all());
        step("earliest", () -> admin.listOffsets(Map.of(first, OffsetSpec.earliest())).all());
        step("newest time", () -> admin.listOffsets(Map.of(first, OffsetSpec.maxTimestamp())).all());
        step("delete records", () -> admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(0))).all());
        step("delete too many records", () -> admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(99))).all());
        step("producers", () -> admin.describeProducers(List.of(first)).all());
        step("reassignments", () -> admin.listPartitionReassignments().reassignments());
        step("elect", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).all());
        step("cluster", () -> admin.describeCluster().nodes());
        @SuppressWarnings("unchecked")
        Map<Integer, Map<String, LogDirDescription>> dirs = (Map<Integer, Map<String, LogDirDescription>>)
            step("log dirs", () -> admin.describeLogDirs(List.of(1)).allDescriptions());
        for (Map.Entry<String, LogDirDescription> dir : dirs.get(1).entrySet()) {
            if (!dir.getValue().replicaInfos().containsKey(first)) {
                step("move", () -> admin.alterReplicaLogDirs(
                    Map.of(new TopicPartitionReplica("orders", 0, 1), dir.getKey())).all());
                break;
            }
        }
        step("delete", () -> admin.deleteTopics(List.of("parcels")).all());
        step("delete again", () -> admin.deleteTopics(List.of("parcels")).all());
    }

    static void configs() throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "orders");
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1");
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "all");
        step("create", () -> admin.createTopics(List.of(new NewTopic("orders", 1, (short) 1))).all());
        step("describe", () -> admin.describeConfigs(List.of(topic),
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(false)).all());
        step("describe a logger", () -> admin.describeConfigs(List.of(logger)).all());
        step("alter", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
            new AlterConfigOp(new ConfigEntry("max.message.bytes", "2000"), AlterConfigOp.OpType.SET),
            new AlterConfigOp(new ConfigEntry("retention.ms", null), AlterConfigOp.OpType.DELETE)))).all());
        step("alter badly", () -> admin.incrementalAlterConfigs(Map.of(topic, List.of(
            new AlterConfigOp(new ConfigEntry("max.message.bytes", "much"), AlterConfigOp.OpType.SET)))).all());
        step("alter a logger", () -> admin.incrementalAlterConfigs(Map.of(logger, List.of(
            new AlterConfigOp(new ConfigEntry("kafka.server", "WARN"), AlterConfigOp.OpType.SET)))).all());
        step("alter a broker", () -> admin.incrementalAlterConfigs(Map.of(broker, List.of(
            new AlterConfigOp(new ConfigEntry("log.cleaner.threads", "1"), AlterConfigOp.OpType.SET)))).all());
        step("alter metrics", () -> admin.incrementalAlterConfigs(Map.of(metrics, List.of(
            new AlterConfigOp(new ConfigEntry("interval.ms", "1000"), AlterConfigOp.OpType.SET)))).all());
        step("list resources", () -> admin.listConfigResources().all());
        step("features", () -> admin.describeFeatures().featureMetadata());
        step("update features", () -> admin.updateFeatures(
            Map.of("group.version", new FeatureUpdate((short) 9, FeatureUpdate.UpgradeType.UPGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).all());
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "shop-producer"));
        step("quota", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1048576.5))))).all());
        step("quotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities());
        step("scram", () -> admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("ann",
            new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "not secret"))).all());
        step("scram users", () -> admin.describeUserScramCredentials().all());
        step("scram nobody", () -> admin.describeUserScramCredentials(List.of("nobody")).all());
        step("unregister", () -> admin.unregisterBroker(7).all());
    }

    static void groups(String group) throws Exception {
        TopicPartition first = new TopicPartition("orders", 0);
        step("list", () -> admin.listGroups().all());
        step("describe", () -> admin.describeConsumerGroups(List.of(group, "nobody")).all());
        step("offsets", () -> admin.listConsumerGroupOffsets(group).all());
        step("set offsets while in use", () -> admin.alterConsumerGroupOffsets(group, Map.of(first, new OffsetAndMetadata(1))).all());
        step("set offsets", () -> admin.alterConsumerGroupOffsets("other", Map.of(first, new OffsetAndMetadata(1))).all());
        step("delete offsets", () -> admin.deleteConsumerGroupOffsets("other", Set.of(first)).all());
        step("remove members", () -> admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all());
        step("delete", () -> admin.deleteConsumerGroups(List.of("other", "nobody")).all());
    }

    static void share(String group) throws Exception {
        TopicPartition first = new TopicPartition("orders", 0);
        step("describe", () -> admin.describeShareGroups(List.of(group)).all());
        step("offsets", () -> admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all());
        step("set offsets", () -> admin.alterShareGroupOffsets(group, Map.of(first, 0L)).all());
        step("delete offsets", () -> admin.deleteShareGroupOffsets(group, Set.of("orders")).all());
        step("delete", () -> admin.deleteShareGroups(List.of(group)).all());
    }

    static void streams(String group) throws Exception {
        step("describe", () -> admin.describeStreamsGroups(List.of(group)).all());
        step("list", () -> admin.listGroups().all());
    }

    static void access() throws Exception {
        ResourcePattern orders = new ResourcePattern(ResourceType.TOPIC, "orders", PatternType.LITERAL);
        AclBinding may = new AclBinding(orders, new AccessControlEntry("User:ann", "*", AclOperation.READ, AclPermissionType.ALLOW));
        step("create", () -> admin.createTopics(List.of(new NewTopic("orders", 1, (short) 1))).all());
        step("allow", () -> admin.createAcls(List.of(may)).all());
        step("allow the group", () -> admin.createAcls(List.of(new AclBinding(
            new ResourcePattern(ResourceType.GROUP, "bill", PatternType.PREFIXED),
            new AccessControlEntry("User:ann", "*", AclOperation.ALL, AclPermissionType.ALLOW)))).all());
        step("describe", () -> admin.describeAcls(AclBindingFilter.ANY).values());
        step("delete", () -> admin.deleteAcls(List.of(new AclBindingFilter(
            new ResourcePatternFilter(ResourceType.TOPIC, "gone", PatternType.ANY), AccessControlEntryFilter.ANY))).all());
    }

    static void tokens() throws Exception {
        Object made = step("create", () -> admin.createDelegationToken(
            new CreateDelegationTokenOptions().maxLifetimeMs(3600000)).delegationToken());
        byte[] hmac = ((org.apache.kafka.common.security.token.delegation.DelegationToken) made).hmac();
        Thread.sleep(1000); // the brokers hear of it from the controller
        step("describe", () -> admin.describeDelegationToken().delegationTokens());
        step("renew", () -> admin.renewDelegationToken(hmac).expiryTimestamp());
        step("expire", () -> admin.expireDelegationToken(hmac).expiryTimestamp());
        step("renew what is gone", () -> admin.renewDelegationToken(hmac).expiryTimestamp());
    }

    static void transactions(String[] ids) throws Exception {
        step("list", () -> admin.listTransactions().all());
        step("describe", () -> admin.describeTransactions(List.of(ids)).all());
        step("producers", () -> admin.describeProducers(List.of(new TopicPartition("orders", 0))).all());
        step("fence", () -> admin.fenceProducers(List.of(ids)).all());
    }

    static void create(String[] topics) throws Exception {
        for (String text : topics) { // NAME:1,2:2,1 gives the replicas of each partition
            String[] parts = text.split(":");
            Map<Integer, List<Integer>> copies = new HashMap<>();
            for (int n = 1; n < parts.length; n++)  // NAME:1:1 is two partitions on broker 1
                copies.put(n - 1, Arrays.stream(parts[n].split(",")).map(Integer::valueOf).toList());
            step("create", () -> admin.createTopics(List.of(new NewTopic(parts[0], copies))).all());
        }
    }

    static void move(String[] what) throws Exception {
        for (String text : what) { // NAME:PARTITION:2,1 makes 2 the leader; wait:MS
            String[] parts = text.split(":");
            if (parts[0].equals("wait")) { Thread.sleep(Long.parseLong(parts[1])); continue; }
            TopicPartition place = new TopicPartition(parts[0], Integer.parseInt(parts[1]));
            List<Integer> copies = Arrays.stream(parts[2].split(",")).map(Integer::valueOf).toList();
            step("reassign", () -> admin.alterPartitionReassignments(
                Map.of(place, Optional.of(new NewPartitionReassignment(copies)))).all());
            for (int n = 0; n < 50; n++) {
                Map<?, ?> moving = (Map<?, ?>) step("reassignments", () -> admin.listPartitionReassignments().reassignments());
                if (moving.isEmpty()) break;
                Thread.sleep(100);
            }
            step("elect", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(place)).all());
        }
    }

    static void set(ConfigResource.Type type, String name, String key, String value) throws Exception {
        step("set", () -> admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name),
            List.of(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)))).all());
    }

    static void quota(String[] what) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, what[0]));
        step("quota", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
            List.of(new ClientQuotaAlteration.Op(what[1], Double.valueOf(what[2])))))).all());
    }

    static void quorum(String[] what) throws Exception {
        step("describe", () -> admin.describeMetadataQuorum().quorumInfo());
        if (what.length == 4) { // add|remove ID UUID HOST:PORT
            int id = Integer.parseInt(what[1]);
            Uuid place = Uuid.fromString(what[2]);
            String[] address = what[3].split(":");
            if (what[0].equals("add"))
                step("add", () -> admin.addRaftVoter(id, place, Set.of(
                    new RaftVoterEndpoint("CONTROLLER", address[0], Integer.parseInt(address[1])))).all());
            else
                step("remove", () -> admin.removeRaftVoter(id, place).all());
        }
    }
}
