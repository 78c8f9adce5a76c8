package org.edgefl.model;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import org.edgefl.files.AtomicFile;
import org.edgefl.wire.Body;
import org.edgefl.wire.BodyWriter;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Tensor;

/**
 * The folder {@code model} of a home: the models of the last task that was trained.
 *
 * <p>Files are named by their digests and never change; {@code models.json} says which of them belong together. So a
 * reader, which takes no lock, sees the graph and the weights of one task or of the next, and never a mixture.
 */
public final class ModelFolder {
    private final Path folder;

    /** The folder, which exists. */
    public ModelFolder(Path folder) {
        this.folder = folder;
    }

    /**
     * Replace the models by those of a task.
     *
     * @param inference the inference graph, a file that never changes
     * @param downloaded the weights as they were downloaded, a file that never changes
     * @param own the weights as they were trained here
     * @param parameters the number of parameters, without running statistics
     */
    public void replace(String taskId, int round, Path inference, Path downloaded, Map<String, Tensor> own,
            long parameters) throws IOException {
        Body body = Body.weights(own);
        Path trained = folder.resolve("trained.safetensors");
        AtomicFile.write(trained, out -> BodyWriter.write(body, out));
        String personal = named(Digests.of(trained), "safetensors");
        Files.move(trained, folder.resolve(personal), StandardCopyOption.ATOMIC_MOVE,
            StandardCopyOption.REPLACE_EXISTING);
        String graph = take(inference, "onnx");
        String shared = take(downloaded, "safetensors");
        KeptModels models = new KeptModels(taskId, round, graph, personal, shared, parameters);
        models.write(folder);
        removeOthers(models);
    }

    private static String named(String digest, String ending) {
        return digest.substring("sha256:".length()) + "." + ending;
    }

    /** Keep a download under its digest: by a second link where the system allows one, else by a copy. */
    private String take(Path download, String ending) throws IOException {
        String name = named(Digests.of(download), ending);
        Path target = folder.resolve(name);
        if (Files.exists(target)) {
            return name;
        }
        Path part = folder.resolve("taken.new");
        Files.deleteIfExists(part);
        try {
            Files.createLink(part, download);
        } catch (IOException | UnsupportedOperationException | SecurityException notAllowed) {
            // Android allows apps no hard links.
            Files.copy(download, part, StandardCopyOption.REPLACE_EXISTING);
        }
        AtomicFile.restrict(part);
        Files.move(part, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        return name;
    }

    private void removeOthers(KeptModels models) throws IOException {
        File[] files = folder.toFile().listFiles();
        for (File file : files == null ? new File[0] : files) {
            if (!models.has(file.getName())) {
                Files.deleteIfExists(file.toPath());
            }
        }
    }
}
