package org.edgefl.desktop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.edgefl.agent.Agent;
import org.edgefl.agent.AgentHome;
import org.edgefl.agent.AgentSettings;
import org.edgefl.agent.OwnerLimits;
import org.edgefl.agent.Progress;
import org.edgefl.engine.Engine;
import org.edgefl.engine.OnnxEngine;
import org.edgefl.http.CoordinatorUrl;
import org.edgefl.http.Pairing;
import org.edgefl.http.TrustedCertificates;
import org.edgefl.http.UrlTransport;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.profile.DeviceFacts;
import org.edgefl.profile.JvmFacts;
import org.edgefl.profile.Profiler;
import org.edgefl.telemetry.HeapMeters;
import org.edgefl.telemetry.LinuxMeters;
import org.edgefl.values.Capabilities;

/** Builds an agent from the command line and runs it until it ends or is stopped. */
final class JoinCommand {
    private static final double MEGABYTE = 1_000_000;
    private static final double STOP_SECONDS = 4.5;

    private final JoinOptions options;
    private final CountDownLatch ended = new CountDownLatch(1);

    JoinCommand(JoinOptions options) {
        this.options = options;
    }

    void run() throws IOException {
        Pairing pairing = pairing();
        int threads = (int) options.number("--threads", Runtime.getRuntime().availableProcessors(), 1, 4096);
        try (AgentHome folder = new AgentHome(options.home())) {
            EngineLibrary.unpack(options.home());
            Engine engine = new OnnxEngine(threads);
            Agent agent = new Agent(folder, settings(engine), pairing, (url, pins, meter) -> {
                TrustedCertificates trusted = options.has("--certificate") && pins.isEmpty()
                    ? TrustedCertificates.ofFile(Path.of(options.text("--certificate", null)))
                    : TrustedCertificates.pinned(pins);
                return new UrlTransport(url, trusted, "edgefl-java/" + Main.VERSION, meter);
            }, Progress.NONE, line -> {
                if (!options.has("--quiet")) {
                    System.err.println(line);
                }
            });
            stopOnSignals(agent);
            agent.run();
        } finally {
            ended.countDown();
        }
    }

    /** SIGTERM and Ctrl-C end the agent, which keeps what it has; then this program ends with 0, as it was meant to. */
    private void stopOnSignals(Agent agent) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            if (ended.getCount() == 0) {
                return;
            }
            agent.stop();
            try {
                ended.await((long) (1000 * STOP_SECONDS), TimeUnit.MILLISECONDS);
            } catch (InterruptedException now) {
                Thread.currentThread().interrupt();
            }
            Runtime.getRuntime().halt(0);
        }, "edgefl-stop"));
    }

    private Pairing pairing() throws IOException {
        String uri = options.uri().equals("-") ? firstLine() : options.uri();
        boolean insecure = options.has("--insecure");
        Pairing found = uri.contains("#") || uri.startsWith("edgefl:") ? Pairing.parse(uri, insecure)
            : new Pairing(CoordinatorUrl.checked(uri, insecure), null, null, List.of());
        String key = options.text("--key", found.key() == null ? System.getenv("EDGEFL_JOIN_KEY") : found.key());
        return new Pairing(found.url(), key, found.federation(), found.pins());
    }

    /** A URI on the command line can be read by every user of the machine; one from standard input cannot. */
    private static String firstLine() throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        String line = in.readLine();
        return line == null ? "" : line.trim();
    }

    private AgentSettings settings(Engine engine) throws IOException {
        DeviceFacts facts = new JvmFacts();
        SampleFile samples = new SampleFile(Path.of(options.text("--data", null)),
            options.number("--validation", 0.1, 0, 0.99), (long) options.number("--seed", 0, 0, 1e15));
        String[] software = engine.description().split(" ");
        Capabilities capabilities = new Capabilities("edgefl-java", Main.VERSION,
            facts.system() + ", Java " + System.getProperty("java.version"), software[0], software[1]);
        return new AgentSettings(options.text("--name", null), capabilities, engine, samples::read,
            new Profiler(engine, facts, options.number("--measure-seconds", 20, 0.1, 3600)), profile(),
            LinuxMeters.areAvailable() ? new LinuxMeters() : new HeapMeters(), limits(),
            options.number("--wait", 20, 0, 30), (int) options.number("--tasks", 0, 1, Integer.MAX_VALUE),
            options.number("--idle-seconds", 0, 0, 1e9),
            options.number("--checkpoint-seconds", 60, 0, 86_400));
    }

    private JsonObject profile() throws IOException {
        return options.has("--profile")
            ? JsonReader.object(Files.readAllBytes(Path.of(options.text("--profile", null)))) : null;
    }

    private OwnerLimits limits() {
        return new OwnerLimits(SystemConditions.of(options), 60 * options.number("--minutes-a-task", 60, 0.01, 1e6),
            (long) (MEGABYTE * options.number("--megabytes-a-day", 0, 0, 1e9)),
            (long) (MEGABYTE * options.number("--memory", 0, 0, 1e9)),
            (long) (MEGABYTE * options.number("--cache", 2048, 1, 1e9)));
    }
}
