package org.edgefl.agent;

import java.util.List;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.Meter;
import org.edgefl.http.Transport;

/** The way to the coordinator, made anew when the pins change. */
final class Connection {
    private final Agent.Connector connector;
    private final Meter meter;
    private volatile Transport transport;
    private volatile boolean aborted;

    Connection(Agent.Connector connector, Meter meter) {
        this.connector = connector;
        this.meter = meter;
    }

    void open(String url, List<String> pins) {
        transport = connector.connect(url, pins, meter);
        if (aborted) {
            transport.abort();
        }
    }

    CoordinatorClient client() {
        return new CoordinatorClient(transport);
    }

    void abort() {
        aborted = true;
        Transport current = transport;
        if (current != null) {
            current.abort();
        }
    }
}
