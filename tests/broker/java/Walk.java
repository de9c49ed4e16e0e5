// Every version of every request that these jars know, each filled with something: `Walk HOST:PORT TOPIC LISTENER`.
// Kafka's own classes write the requests and read the answers. Prints how many were answered.

import java.io.DataInputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.Type;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ProduceResponseData;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.Schema;

public class Walk {
    static final Pattern REFUSED = Pattern.compile("non-default (\\w+) at version");
    // What would end the walk or make it wait: these are left as they are by default.
    static final Set<String> KEPT = new HashSet<>(Arrays.asList("acks", "maxWaitMs", "minBytes", "memberId", "brokerEpoch",
        "groupInstanceId", "replicaId", "replicaState", "wantShutDown", "instanceId"));
    static String topic;
    static Socket socket;
    static int correlation;

    public static void main(String[] args) throws Exception {
        String[] place = args[0].split(":");
        topic = args[1];
        int answered = 0, silent = 0;
        for (ApiMessageType type : ApiMessageType.values()) {
            if (type.listeners().stream().noneMatch(listener -> listener.name().equals(args[2]))) continue;
            open(place);
            Schema[] schemas = type.requestSchemas();
            for (short version = 0; version < schemas.length; version++) {
                if (schemas[version] == null) continue;
                try {
                    send(type, version);
                    receive(type, version);
                    answered++;
                } catch (IOException e) {
                    silent++;
                    System.out.println("note " + type.name + " " + version + ": " + e.getClass().getSimpleName());
                    open(place);
                }
            }
        }
        socket.close();
        System.out.println("answered=" + answered + "\nsilent=" + silent);
    }

    static void open(String[] place) throws Exception {
        if (socket != null) socket.close();
        socket = new Socket();
        socket.connect(new InetSocketAddress(place[0], Integer.parseInt(place[1])), 2000);
        socket.setSoTimeout(2500);
    }

    static void send(ApiMessageType type, short version) throws Exception {
        RequestHeaderData header = new RequestHeaderData().setRequestApiKey(type.apiKey())
            .setRequestApiVersion(version).setCorrelationId(++correlation).setClientId("walker");
        Set<String> refused = new HashSet<>(KEPT);
        while (true) {
            ApiMessage body = (ApiMessage) filled(type.newRequest(), refused, 0);
            if (type == ApiMessageType.PRODUCE) body.getClass().getMethod("setAcks", short.class).invoke(body, (short) 1);
            try {
                byte[] first = bytes(header, type.requestHeaderVersion(version));
                byte[] second = bytes(body, version);
                ByteBuffer all = ByteBuffer.allocate(4 + first.length + second.length);
                all.putInt(first.length + second.length).put(first).put(second);
                socket.getOutputStream().write(all.array());
                return;
            } catch (UnsupportedVersionException e) {
                Matcher found = REFUSED.matcher(e.getMessage());
                if (!found.find() || !refused.add(found.group(1))) throw e;
            }
        }
    }

    static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    static void receive(ApiMessageType type, short version) throws Exception {
        DataInputStream in = new DataInputStream(socket.getInputStream());
        byte[] data = new byte[in.readInt()];
        in.readFully(data);
        ByteBuffer buffer = ByteBuffer.wrap(data);
        if (buffer.getInt() != correlation) throw new IllegalStateException("not the answer to this question");
        if (type.responseHeaderVersion(version) > 0) buffer.get();
        ApiMessage body = type.newResponse();
        body.read(new ByteBufferAccessor(buffer), version);
        if (type == ApiMessageType.PRODUCE) // two records were sent
            ((ProduceResponseData) body).responses().forEach(one -> one.partitionResponses().forEach(part -> {
                if (part.errorCode() == 0) System.out.println("produced=2");
            }));
        if (buffer.hasRemaining()) System.out.println("note " + type.name + " " + version + ": " + buffer.remaining() + " bytes left");
    }

    static Message filled(Message message, Set<String> refused, int depth) throws Exception {
        for (Method setter : message.getClass().getMethods()) {
            if (!setter.getName().startsWith("set") || setter.getParameterCount() != 1) continue;
            String name = setter.getName().substring(3, 4).toLowerCase() + setter.getName().substring(4);
            if (refused.contains(name)) continue;
            Object value = value(name, setter.getParameterTypes()[0], setter.getGenericParameterTypes()[0], refused, depth);
            if (value != null) setter.invoke(message, value);
        }
        return message;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static Object value(String name, Class<?> kind, Type exact, Set<String> refused, int depth) throws Exception {
        String lower = name.toLowerCase();
        if (kind == String.class) {
            if (lower.contains("topic") || lower.equals("name") || lower.equals("resourcename")) return topic;
            if (lower.contains("host")) return "127.0.0.1";
            return "walk";
        }
        if (kind == int.class && lower.endsWith("timeoutms")) return 7000;
        if (kind == int.class && lower.endsWith("maxbytes")) return 1000;
        if (kind == byte[].class) return new byte[] {0, 1};
        if (kind == Uuid.class) return new Uuid(7, 7);
        if (Message.class.isAssignableFrom(kind))
            return depth > 5 ? null : filled((Message) kind.getDeclaredConstructor().newInstance(), refused, depth + 1);
        if (List.class == kind) {
            List<Object> list = new ArrayList<>();
            Type inner = ((ParameterizedType) exact).getActualTypeArguments()[0];
            Object one = element(name, (Class<?>) (inner instanceof Class ? inner : ((ParameterizedType) inner).getRawType()), refused, depth);
            if (one != null) list.add(one);
            return list;
        }
        if (Collection.class.isAssignableFrom(kind)) {
            Collection all = (Collection) kind.getDeclaredConstructor().newInstance();
            Type inner = ((ParameterizedType) kind.getGenericSuperclass()).getActualTypeArguments()[0];
            all.add(element(name, (Class<?>) inner, refused, depth));
            return all;
        }
        if (kind == byte.class && lower.startsWith("resourcetype")) return (byte) 2;
        if (kind == byte.class && (lower.startsWith("operation") || lower.startsWith("permissiontype"))) return (byte) 3;
        if (kind == byte.class && lower.startsWith("patterntype")) return (byte) 3;
        if (kind.getSimpleName().equals("BaseRecords")) return records();
        return null; // numbers and flags as they are by default
    }

    // one batch of two records; the classes have moved between releases
    static Object records() throws Exception {
        Class<?> memory = found("record.internal.MemoryRecords", "record.MemoryRecords");
        Class<?> simple = found("record.internal.SimpleRecord", "record.SimpleRecord");
        Class<?> codec = found("compress.Compression", "record.CompressionType");
        Object two = java.lang.reflect.Array.newInstance(simple, 2);
        for (int n = 0; n < 2; n++)
            java.lang.reflect.Array.set(two, n, simple.getConstructor(byte[].class, byte[].class).newInstance(new byte[] {1}, new byte[] {2, 3}));
        return memory.getMethod("withRecords", codec, two.getClass()).invoke(null, codec.getField("NONE").get(null), two);
    }

    static Class<?> found(String... names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                return Class.forName("org.apache.kafka.common." + name);
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        throw new ClassNotFoundException(names[0]);
    }

    static Object element(String name, Class<?> kind, Set<String> refused, int depth) throws Exception {
        if (kind == Integer.class) return name.toLowerCase().contains("partition") ? 0 : 1;
        if (kind == Long.class) return 1L;
        if (kind == Short.class) return (short) 1;
        if (kind == Byte.class) return (byte) 1;
        return value(name.equals("topics") ? "topic" : name, kind, kind, refused, depth);
    }
}
