package org.edgefl.app;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.edgefl.app.phone.FakeKeystore;
import org.robolectric.RuntimeEnvironment;

/**
 * What Android keeps when a process of the app dies: the app's files, keys in the keystore, and the saved state of an
 * activity that the owner has left. Nothing else goes from one process to the next.
 */
record LeftBehind(Path folder) {
    /** Keep keys here; the files of this process are found later. */
    void begin() throws IOException {
        FakeKeystore.install(folder.resolve("keys"));
        write("data", RuntimeEnvironment.getApplication().getDataDir().toString().getBytes(StandardCharsets.UTF_8));
    }

    /** Keep something under a name; it is there as a whole, or not at all. */
    void write(String name, byte[] content) throws IOException {
        Path partial = Files.write(folder.resolve(name + ".new"), content);
        Files.move(partial, folder.resolve(name));
    }

    boolean has(String name) {
        return Files.exists(folder.resolve(name));
    }

    byte[] read(String name) throws IOException {
        return Files.readAllBytes(folder.resolve(name));
    }

    /** The files of the app, once there are any. */
    Path data() throws IOException {
        return Path.of(new String(read("data"), StandardCharsets.UTF_8));
    }

    /** A file of the task in progress. */
    Path taskFile(String name) throws IOException {
        return data().resolve("files/federation/task").resolve(name);
    }

    /** Give it to this process, before its application exists. */
    void inherit() throws IOException {
        FakeKeystore.install(folder.resolve("keys"));
        Path from = data();
        Path to = RuntimeEnvironment.getTempDirectory().createIfNotExists(from.getFileName().toString());
        List<Path> files;
        try (Stream<Path> all = Files.walk(from)) {
            files = all.filter(file -> !file.equals(from)).collect(Collectors.toList());
        }
        for (Path file : files) {
            Files.copy(file, to.resolve(from.relativize(file).toString()));
        }
    }
}
