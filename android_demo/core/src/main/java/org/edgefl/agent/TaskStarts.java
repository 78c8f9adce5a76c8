package org.edgefl.agent;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.json.JsonObject;
import org.edgefl.values.Refusal;
import org.edgefl.values.TaskRefused;

/**
 * Counts how often the training of a task began without getting any further.
 *
 * <p>A system ends a process that takes too much memory, without a word. The next one would begin the same task again,
 * and end the same way, until the deadline.
 */
final class TaskStarts {
    static final String FILE = "starts.json";
    /** More than an owner who closes the app again and again, or a machine that loses power, would need. */
    static final int MOST = 10;

    private TaskStarts() {}

    /** Note that training begins; refuse the task if it began too often since the last checkpoint. */
    static void note(AgentHome home) throws IOException {
        long reached = millis(home.taskFile("checkpoint.safetensors"));
        JsonObject before = home.document("task/" + FILE);
        boolean further = before == null || before.whole("checkpoint_millis") != reached;
        long count = further ? 1 : before.whole("count") + 1;
        if (count > MOST) {
            throw new TaskRefused(Refusal.Reason.MEMORY, "the client was ended " + MOST + " times at the same place of"
                + " this task: it may take more memory than there is");
        }
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("count", count);
        fields.put("checkpoint_millis", reached);
        home.put("task/" + FILE, fields);
    }

    private static long millis(Path checkpoint) throws IOException {
        return Files.exists(checkpoint) ? Files.getLastModifiedTime(checkpoint).toMillis() : 0;
    }
}
