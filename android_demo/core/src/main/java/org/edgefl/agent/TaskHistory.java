package org.edgefl.agent;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.files.AtomicFile;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;

/**
 * How the device's tasks ended: {@code history.jsonl} of its home, one record a line, the newest last.
 *
 * <p>A record is written before the task is forgotten. Whoever is cut off in between ends the task again after the
 * restart, and the record of that task is there already: so none is lost, and none is there twice.
 */
public final class TaskHistory {
    /** Most records that are kept. */
    public static final int MOST = 500;

    private static final String FILE = "history.jsonl";

    private TaskHistory() {}

    /** Read the records of a home folder, the newest first; also while an agent runs there. */
    public static List<TaskRecord> read(Path home) {
        List<TaskRecord> found = new ArrayList<>();
        for (String line : lines(home)) {
            try {
                found.add(record(JsonReader.object(line)));
            } catch (InvalidJson damaged) {
                continue; // One line less is no reason to lose the others.
            }
        }
        Collections.reverse(found);
        return found;
    }

    /** Add a record, unless the task has one. */
    static void add(Path home, TaskRecord record) throws IOException {
        String line = JsonText.write(fields(record));
        String beginning = line.substring(0, line.indexOf(',') + 1);
        List<String> lines = lines(home);
        for (String known : lines) {
            if (known.startsWith(beginning)) {
                return;
            }
        }
        lines.add(line);
        List<String> newest = lines.subList(Math.max(0, lines.size() - MOST), lines.size());
        String text = String.join("\n", newest) + "\n";
        AtomicFile.write(home.resolve(FILE), text.getBytes(StandardCharsets.UTF_8));
    }

    static void delete(Path home) throws IOException {
        Files.deleteIfExists(home.resolve(FILE));
        Files.deleteIfExists(home.resolve(FILE + ".new"));
    }

    private static List<String> lines(Path home) {
        try {
            String text = new String(Files.readAllBytes(home.resolve(FILE)), StandardCharsets.UTF_8);
            List<String> found = new ArrayList<>();
            for (String line : text.split("\n")) {
                if (!line.isEmpty()) {
                    found.add(line);
                }
            }
            return found;
        } catch (NoSuchFileException none) {
            return new ArrayList<>();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The id comes first: it is what a line is recognised by. */
    private static Map<String, Object> fields(TaskRecord record) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("task_id", record.taskId());
        fields.put("round", record.round());
        fields.put("personal", record.personal());
        fields.put("rule", record.rule());
        fields.put("outcome", record.outcome());
        fields.put("message", record.message());
        fields.put("ended_millis", record.endedMillis());
        fields.put("samples", record.samples());
        fields.put("steps", record.steps());
        fields.put("loss", Double.isNaN(record.loss()) ? null : record.loss());
        fields.put("accuracy", record.accuracy());
        fields.put("telemetry", record.telemetry() == null ? null : record.telemetry().toJson());
        return fields;
    }

    private static TaskRecord record(JsonObject fields) {
        return new TaskRecord(fields.text("task_id"), fields.count("round", 0), fields.flag("personal", false),
            fields.text("rule"), fields.text("outcome"), fields.text("message"), fields.whole("ended_millis"),
            fields.count("samples", 0), fields.count("steps", 0), fields.number("loss", Double.NaN),
            fields.has("accuracy") ? (Double) fields.number("accuracy") : null, fields.objectOrNull("telemetry"));
    }
}
