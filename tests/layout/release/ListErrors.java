import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Kafka's error codes: code, name, whether a retry may succeed. */
public class ListErrors {
    public static void main(String[] args) {
        for (Errors each : Errors.values()) {
            System.out.println(each.code() + "\t" + each.name() + "\t" + (each.exception() instanceof RetriableException));
        }
    }
}
