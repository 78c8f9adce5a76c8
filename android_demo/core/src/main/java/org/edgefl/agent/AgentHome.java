package org.edgefl.agent;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.Map;
import org.edgefl.EdgeFLError;
import org.edgefl.files.AtomicFile;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;

/**
 * The folder of a device's files, and its program counter: what is written here decides how it goes on after a restart.
 *
 * <pre>
 * device.json                   where it has joined, and its secret
 * profile.json                  what it measured about itself
 * task/plan.json                the task that it has
 * task/checkpoint.safetensors   where its training stands
 * task/result.safetensors       a result that has not been acknowledged
 * task/refusal.json             a refusal that has not been acknowledged
 * model/                        the device's own model, which never leaves it
 * cache/                        downloads, named by their digests
 * traffic.json                  bytes of the day
 * </pre>
 */
public final class AgentHome implements AutoCloseable {
    private final Path folder;
    private final FileChannel lockFile;

    /** Open a folder, which only one agent may use at a time. */
    public AgentHome(Path folder) throws IOException {
        this.folder = folder;
        for (String name : new String[] {"task", "model", "cache"}) {
            Files.createDirectories(folder.resolve(name));
            AtomicFile.restrict(folder.resolve(name));
        }
        AtomicFile.restrict(folder);
        lockFile = FileChannel.open(folder.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        if (!tryLock()) {
            lockFile.close();
            throw new EdgeFLError("another client uses the folder " + folder, "Stop it, or give another --home.");
        }
    }

    private boolean tryLock() throws IOException {
        try {
            FileLock lock = lockFile.tryLock();
            return lock != null;
        } catch (OverlappingFileLockException here) {
            return false;
        }
    }

    /** The folder of downloads. */
    Path cache() {
        return folder.resolve("cache");
    }

    /** A file of the task in progress. */
    Path taskFile(String name) {
        return folder.resolve("task").resolve(name);
    }

    /** A file of the device's own model. */
    public Path modelFile(String name) {
        return folder.resolve("model").resolve(name);
    }

    /** The bytes that the disk has left for this folder. */
    long freeBytes() throws IOException {
        return Files.getFileStore(folder).getUsableSpace();
    }

    /** Return a document of the home folder, or null if it is not there or damaged. */
    public JsonObject document(String name) {
        Path file = folder.resolve(name);
        try {
            return Files.exists(file) ? JsonReader.object(Files.readAllBytes(file)) : null;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InvalidJson damaged) {
            return null;
        }
    }

    /** Write a document of the home folder. */
    public void put(String name, Map<String, Object> document) throws IOException {
        AtomicFile.write(folder.resolve(name), JsonText.write(document).getBytes(StandardCharsets.UTF_8));
    }

    /** Forget the task in progress: it has been acknowledged, or it is no longer wanted. */
    void clearTask() throws IOException {
        // The plan goes first: with a plan and no result, a restart would train an acknowledged task once more.
        for (String name : new String[] {
            "plan.json", "checkpoint.safetensors", "result.safetensors", "refusal.json", "checkpoint.safetensors.new",
            "result.safetensors.new"}) {
            Files.deleteIfExists(taskFile(name));
        }
    }

    long trafficOf(String day) {
        JsonObject traffic = document("traffic.json");
        return traffic != null && day.equals(traffic.textOrNull("day")) ? traffic.whole("bytes") : 0;
    }

    void putTraffic(String day, long bytes) throws IOException {
        Map<String, Object> traffic = new LinkedHashMap<>();
        traffic.put("day", day);
        traffic.put("bytes", bytes);
        put("traffic.json", traffic);
    }

    @Override
    public void close() throws IOException {
        lockFile.close();
    }
}
