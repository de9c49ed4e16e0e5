// What a broker on this machine counted of its requests, at a moment when none came to its end.

import com.sun.tools.attach.VirtualMachine;
import com.sun.tools.attach.VirtualMachineDescriptor;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

public class Counters {
    private static final int ATTEMPTS = 2000;

    /** Counters TEXT: the Java process with this text in its command line. */
    public static void main(String[] arguments) throws Exception {
        VirtualMachineDescriptor found = null;
        for (VirtualMachineDescriptor each : VirtualMachine.list()) {
            if (each.displayName().startsWith("kafka.Kafka") && each.displayName().contains(arguments[0])) {
                found = each;
            }
        }
        if (found == null) {
            System.err.println("no broker has this in its command line: " + arguments[0]);
            System.exit(1);
        }
        VirtualMachine machine = VirtualMachine.attach(found);
        String address = machine.startLocalManagementAgent();
        machine.detach();
        MBeanServerConnection server =
            JMXConnectorFactory.connect(new JMXServiceURL(address)).getMBeanServerConnection();
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            List<ObjectName> meters = names(server, "RequestsPerSec");
            long begin = now();
            Map<String, Object> before = counted(server, meters);
            Map<String, Object> rest = counted(server, names(server, "ErrorsPerSec"));
            for (ObjectName name : names(server, "*Ms")) {
                Object count = server.getAttribute(name, "Count");
                if ((Long) count > 0) {
                    rest.put(line(name, "Count"), count);
                    rest.put(line(name, "Mean"), server.getAttribute(name, "Mean"));
                }
            }
            Map<String, Object> after = counted(server, meters);
            long end = now();
            if (before.equals(after) && meters.size() == names(server, "RequestsPerSec").size()) {
                System.out.println("between\t" + begin + "\t" + end);
                before.forEach((key, value) -> System.out.println(key + "\t" + value));
                rest.forEach((key, value) -> System.out.println(key + "\t" + value));
                return;
            }
        }
        System.err.println("the broker was never at rest");
        System.exit(1);
    }

    private static long now() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    private static List<ObjectName> names(MBeanServerConnection server, String name) throws Exception {
        return new ArrayList<>(
            server.queryNames(new ObjectName("kafka.network:type=RequestMetrics,name=" + name + ",*"), null));
    }

    private static Map<String, Object> counted(MBeanServerConnection server, List<ObjectName> names)
        throws Exception {
        Map<String, Object> found = new TreeMap<>();
        for (ObjectName name : names) {
            Object count = server.getAttribute(name, "Count");
            if ((Long) count > 0) {
                found.put(line(name, "Count"), count);
            }
        }
        return found;
    }

    /** Name, request, version or error, attribute: between tabs. */
    private static String line(ObjectName name, String attribute) {
        String detail = name.getKeyProperty("version");
        if (detail == null) {
            detail = name.getKeyProperty("error");
        }
        return String.join("\t", name.getKeyProperty("name"), name.getKeyProperty("request"),
            detail == null ? "" : detail, attribute);
    }
}
