// A broker's plug-in that takes the metrics clients push, and forgets them.

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

public class Receiver implements MetricsReporter, ClientTelemetry {
    public void init(List<KafkaMetric> metrics) {}
    public void metricChange(KafkaMetric metric) {}
    public void metricRemoval(KafkaMetric metric) {}
    public void close() {}
    public void configure(Map<String, ?> settings) {}
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> System.out.println("metrics: " + payload.data().remaining() + " bytes");
    }
}
