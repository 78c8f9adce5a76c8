package org.edgefl.model;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.files.AtomicFile;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;

/**
 * Which files of a home's folder {@code model} belong together: {@code models.json}, replaced as a whole.
 *
 * @param graph name of the inference graph
 * @param personal name of the weights that were trained here
 * @param shared name of the weights as they were downloaded
 * @param parameters the number of parameters, without running statistics
 */
record KeptModels(String taskId, int round, String graph, String personal, String shared, long parameters) {
    private static final String FILE = "models.json";

    /** Read it; null if there is none, or it is damaged. */
    static KeptModels read(Path folder) throws IOException {
        try {
            JsonObject fields = JsonReader.object(Files.readAllBytes(folder.resolve(FILE)));
            return new KeptModels(fields.text("task_id"), fields.count("round", 0), fields.text("graph"),
                fields.text("personal"), fields.text("shared"), fields.whole("parameters"));
        } catch (NoSuchFileException | InvalidJson none) {
            return null;
        }
    }

    void write(Path folder) throws IOException {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("task_id", taskId);
        fields.put("round", round);
        fields.put("graph", graph);
        fields.put("personal", personal);
        fields.put("shared", shared);
        fields.put("parameters", parameters);
        AtomicFile.write(folder.resolve(FILE), JsonText.write(fields).getBytes(StandardCharsets.UTF_8));
    }

    /** Return whether a file of the folder belongs to it. */
    boolean has(String name) {
        return name.equals(FILE) || name.equals(graph) || name.equals(personal) || name.equals(shared);
    }
}
