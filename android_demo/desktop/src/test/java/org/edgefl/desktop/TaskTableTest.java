package org.edgefl.desktop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.edgefl.agent.TaskRecord;
import org.edgefl.json.JsonReader;
import org.junit.jupiter.api.Test;

/** What `tasks` prints. */
class TaskTableTest {
    @Test
    void everyTaskIsOneLineWithWhatIsKnownOfIt() {
        String telemetry = "{\"latency\":{\"round_seconds\":2.5},\"memory\":{\"peak_bytes\":1000},"
            + "\"transfer\":{\"down_bytes\":77},\"energy\":{\"joules\":12.0,\"source\":\"CPU seconds x 6 W a core\","
            + "\"provenance\":\"estimated\"}}";
        String[] lines = TaskTable.of(List.of(
            new TaskRecord("t2", 5, true, "fine_tune", "accepted", "", 0, 31, 10, 0.5, 0.75,
                JsonReader.object(telemetry)),
            new TaskRecord("t1", 4, false, "sgd", "refused", "too\twarm", 1000, 0, 0, Double.NaN, null, null)))
            .split("\n");
        assertEquals(3, lines.length);
        assertEquals("1970-01-01T00:00:00Z\tpersonal\tfine_tune\taccepted\t31\t10\t0.5000\t0.750\t2.50\t1000\t12.0"
            + "\testimated by CPU seconds x 6 W a core\t77\t", lines[1]);
        assertEquals("1970-01-01T00:00:01Z\t4\tsgd\trefused\t0\t0\t\t\t\t\t\t\t\ttoo warm", lines[2]);
        assertEquals(lines[0].split("\t").length, lines[2].split("\t", -1).length);
    }
}
