package org.edgefl.app;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.runner.JUnitCore;

/**
 * A process of the app: a JVM of its own that plays a class of tests, and is killed as Android kills processes, by a
 * signal that no program can catch. What it leaves is in its {@link #folder}.
 */
final class AppProcess implements AutoCloseable {
    private static final int KILLED = 128 + 9;
    private static final String[] HANDED_ON = {
        "robolectric.offline", "robolectric.dependency.dir", "robolectric.graphicsMode"};

    private final Path folder;
    private final Process process;

    /**
     * Start a process.
     *
     * @param folder where it works, and finds its temporary files; the property {@code app.folder} there
     * @param link the link that its owner opens; the property {@code app.link} there
     */
    AppProcess(Path folder, Class<?> played, String link) throws IOException {
        this.folder = folder;
        List<String> command = new ArrayList<>(List.of(
            System.getProperty("java.home") + File.separator + "bin" + File.separator + "java",
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Djava.io.tmpdir=" + Files.createDirectories(folder),
            "-Dapp.folder=" + folder, "-Dapp.link=" + link));
        for (String name : HANDED_ON) {
            command.add("-D" + name + "=" + System.getProperty(name));
        }
        String classes = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        command.addAll(List.of("-cp", classes, JUnitCore.class.getName(), played.getName()));
        process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log().toFile()).start();
    }

    private Path log() {
        return folder.resolveSibling(folder.getFileName() + ".log");
    }

    /** Wait until something holds; it is a failure if the process ends before that. */
    void await(double seconds, BooleanSupplier something) throws IOException, InterruptedException {
        long end = System.nanoTime() + (long) (1e9 * seconds);
        while (!something.getAsBoolean()) {
            assertTrue("the process ended by itself: " + said(), process.isAlive());
            assertTrue("the process is too slow: " + said(), System.nanoTime() < end);
            Thread.sleep(20);
        }
    }

    private String said() throws IOException {
        return new String(Files.readAllBytes(log()), StandardCharsets.UTF_8);
    }

    /** Kill it, and wait for its end. */
    void kill() throws IOException, InterruptedException {
        process.destroyForcibly();
        assertTrue(process.waitFor(30, TimeUnit.SECONDS));
        assertEquals("it must not have ended by itself: " + said(), KILLED, process.exitValue());
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }
}
