package org.edgefl.agent;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
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
import org.edgefl.model.ModelFolder;

/**
 * The folder of a device's files, and its program counter: what is written here decides how it goes on after a restart.
 *
 * <pre>
 * device.json                   where it has joined, and its secret, sealed by the device's vault
 * profile.json                  what it measured about itself
 * task/plan.json                the task that it has
 * task/checkpoint.safetensors   where its training stands
 * task/result.safetensors       a result that has not been acknowledged
 * task/refusal.json             a refusal that has not been acknowledged
 * task/report.json              what the result says of itself, for the owner
 * task/starts.json              how often its training began at the same place
 * model/                        the models of the last task; the device's own never leaves it
 * history.jsonl                 how tasks ended
 * cache/                        downloads, named by their digests
 * traffic.json                  bytes of the day
 * </pre>
 */
public final class AgentHome implements AutoCloseable {
    private final Path folder;
    private final TokenVault vault;
    private final FileChannel lockFile;

    /** Open a folder, which only one agent may use at a time, and whose files its user alone can read. */
    public AgentHome(Path folder) throws IOException {
        this(folder, TokenVault.PLAIN);
    }

    /** Open a folder whose secret is in a vault. */
    public AgentHome(Path folder, TokenVault vault) throws IOException {
        this.folder = folder;
        this.vault = vault;
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

    /** The folder itself, for those who read it without its lock. */
    public Path folder() {
        return folder;
    }

    TokenVault vault() {
        return vault;
    }

    /** The folder of downloads. */
    Path cache() {
        return folder.resolve("cache");
    }

    /** A file of the task in progress. */
    Path taskFile(String name) {
        return folder.resolve("task").resolve(name);
    }

    /** The models of the last task. */
    ModelFolder models() {
        return new ModelFolder(folder.resolve("model"));
    }

    /** The bytes that the disk has left for this folder. Android has {@code Files.getFileStore}, but it always throws. */
    long freeBytes() {
        return folder.toFile().getUsableSpace();
    }

    /** Return a document of the home folder, or null if it is not there or damaged. */
    public JsonObject document(String name) {
        return document(folder, name);
    }

    /** Return a document of a home folder, without its lock: files are whole or not there. */
    static JsonObject document(Path folder, String name) {
        try {
            return JsonReader.object(Files.readAllBytes(folder.resolve(name)));
        } catch (NoSuchFileException none) {
            return null;
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
            "plan.json", "checkpoint.safetensors", "result.safetensors", "refusal.json", "report.json", TaskStarts.FILE}) {
            Files.deleteIfExists(taskFile(name + ".new"));
            Files.deleteIfExists(taskFile(name));
        }
    }

    /**
     * Leave the federation: forget it, the token, the task, downloads, models and the history.
     *
     * <p>The day's traffic stays, because the owner's limit does, and so does what the device measured about itself.
     */
    public void leave() throws IOException {
        // First the task, so that it can never become one of another federation; then what makes this a member.
        Files.deleteIfExists(taskFile("plan.json"));
        Files.deleteIfExists(folder.resolve("device.json"));
        Files.deleteIfExists(folder.resolve("device.json.new"));
        clearTask();
        TaskHistory.delete(folder);
        for (String name : new String[] {"cache", "model"}) {
            File[] files = folder.resolve(name).toFile().listFiles();
            for (File file : files == null ? new File[0] : files) {
                Files.deleteIfExists(file.toPath());
            }
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
