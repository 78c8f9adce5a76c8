package org.edgefl.app.phone;

import static org.junit.Assert.assertEquals;
import static org.junit.Assume.assumeTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;

/**
 * A real coordinator over TLS, with its own certificate: {@code edgefl serve} as a process of the Python at the property
 * {@code edgefl.python}, for a small convolutional network on digits of 8 x 8 pixels.
 */
public final class Coordinator implements AutoCloseable {
    private static final String NEEDED = "from importlib.util import find_spec;"
        + " raise SystemExit(not all(map(find_spec, ['edgefl', 'coordinator', 'uvicorn', 'sklearn'])))";
    private static final String DIGITS = "import sys, numpy as np; from sklearn.datasets import load_digits;"
        + " digits = load_digits(); np.savez(sys.argv[1], x=(digits.images[:120, None] / 16).astype(np.float32),"
        + " y=digits.target[:120].astype(np.int64))";

    private final Path folder;
    private final Process process;
    private final JsonObject served;

    /** Serve a federation of one device; the test is skipped where there is no Python with EdgeFL. */
    public Coordinator(Path folder, int rounds, int epochs) throws IOException, InterruptedException {
        this.folder = folder;
        assumeTrue("the property edgefl.python names no Python with EdgeFL", hasEdgeFL());
        Path model = root().resolve("tests/device_runtime/small_cnn.zip");
        String federation = "[federation]\nname = \"digits\"\nmodel = \"" + model + "\"\nseed = 3\n"
            + "[strategy]\nname = \"fedavg\"\nwidth = \"full\"\n"
            + "[work]\nepochs = " + epochs + "\nbatch_size = 16\n"
            + "[rounds]\ncount = " + rounds + "\ndeadline = \"10 min\"\n"
            + "[selection]\ndevices = 1\navailable_within = \"90 s\"\n[budget]\nadapt = false\n";
        Path file = folder.resolve("digits.toml");
        Files.write(file, federation.getBytes(StandardCharsets.UTF_8));
        process = python("-m", "edgefl", "serve", file.toString(), "--tls", "--json", "--port", "0", "--state",
            folder.resolve("state").toString());
        BufferedReader out =
            new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        String line = out.readLine();
        if (line == null) {
            throw new IOException("the coordinator said nothing; see " + folder.resolve("python.log"));
        }
        served = JsonReader.object(line.getBytes(StandardCharsets.UTF_8));
    }

    private static Path root() {
        return new File(System.getProperty("edgefl.root", "../..")).toPath().toAbsolutePath().normalize();
    }

    private boolean hasEdgeFL() throws InterruptedException {
        try {
            return python("-c", NEEDED).waitFor() == 0;
        } catch (IOException missing) {
            return false;
        }
    }

    private Process python(String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(System.getProperty("edgefl.python", "python3"));
        Collections.addAll(command, arguments);
        return new ProcessBuilder(command).directory(root().toFile())
            .redirectError(ProcessBuilder.Redirect.appendTo(folder.resolve("python.log").toFile())).start();
    }

    /** The code that its operator shows. */
    public String pairingUri() {
        return served.objects("federations").get(0).text("pairing_uri");
    }

    /** Ask it as its operator does, with the admin token: {@code edgefl fed ACTION digits ...}. */
    public JsonObject ask(String action, String... options) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("-m", "edgefl", "fed", action, "digits", "--url", pairingUri(),
            "--token-file", served.text("admin_token_file")));
        Collections.addAll(command, options);
        Process asked = python(command.toArray(new String[0]));
        byte[] answer = asked.getInputStream().readAllBytes();
        assertEquals("edgefl fed " + action, 0, asked.waitFor());
        return JsonReader.object(answer);
    }

    /** A file of 120 digits as the federation's samples are. */
    public Path digits() throws IOException, InterruptedException {
        Path file = folder.resolve("digits.npz");
        assertEquals(0, python("-c", DIGITS, file.toString()).waitFor());
        return file;
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(30, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException now) {
            Thread.currentThread().interrupt();
            process.destroyForcibly();
        }
    }
}
