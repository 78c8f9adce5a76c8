package org.edgefl.desktop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.edgefl.data.Batches;
import org.edgefl.data.LocalData;
import org.edgefl.data.Npz;
import org.edgefl.desktop.Main.WrongUsage;
import org.edgefl.engine.Engine;
import org.edgefl.engine.OnnxEngine;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.Settings;
import org.edgefl.rules.State;
import org.edgefl.rules.Task;
import org.edgefl.training.TaskSteps;
import org.edgefl.values.SampleSpec;
import org.edgefl.values.Submodel;
import org.edgefl.wire.BodyReader;

/**
 * Takes the training steps of a task that lies in a folder, as many as it is told to, and says how long they took.
 *
 * <p>For benchmarks: whoever compares this client with another runs both in turns. The folder has {@code task.json}
 * (rule, settings, batch_size, epochs, seed, threads), {@code graph.onnx}, {@code weights.safetensors}, {@code
 * submodel.json}, {@code sample.json} and {@code samples.npz}. Every line of standard input is a number of steps.
 */
final class BenchCommand {
    private final Path folder;

    BenchCommand(String[] arguments) {
        if (arguments.length != 2) {
            throw new WrongUsage("bench needs a folder with a task");
        }
        this.folder = Path.of(arguments[1]);
    }

    void run() throws IOException {
        JsonObject work = document("task.json");
        Engine engine = new OnnxEngine(work.count("threads", 1));
        LocalData data = data();
        Batches batches = new Batches(data.trainingSamples(), work.count("epochs", 1), work.count("batch_size", 1), null,
            work.whole("seed"));
        Submodel submodel = Submodel.parse(Files.readAllBytes(folder.resolve("submodel.json")));
        Task task = new Task(submodel, Map.of(), work.whole("seed"), 0, 1, batches.steps());
        LocalRule rule = LocalRule.of(work.text("rule"), new Settings(work.object("settings")), task);
        State state = State.of(BodyReader.read(folder.resolve("weights.safetensors")).dense());
        try (Engine.TrainStep graph =
                engine.train(folder.resolve("graph.onnx"), submodel, rule.forward(state), data.labelMask())) {
            say(Map.of("ready", Map.of("engine", engine.description())));
            serve(new TaskSteps(data, batches, rule, state), batches.steps(), graph);
        }
    }

    private static void serve(TaskSteps steps, int most, Engine.TrainStep graph) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        int step = 0;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int end = Math.min(step + Integer.parseInt(line.trim()), most);
            double loss = 0;
            long began = System.nanoTime();
            for (; step < end; step++) {
                loss = steps.take(graph, step);
            }
            say(Map.of("seconds", (System.nanoTime() - began) / 1e9, "loss", loss));
        }
    }

    private static void say(Map<String, Object> answer) {
        System.out.println(JsonText.write(answer));
        System.out.flush();
    }

    private JsonObject document(String name) throws IOException {
        return JsonReader.object(Files.readAllBytes(folder.resolve(name)));
    }

    private LocalData data() throws IOException {
        try (InputStream in = Files.newInputStream(folder.resolve("samples.npz"))) {
            return LocalData.of(Npz.read(in), SampleSpec.of(document("sample.json")), 0, 0);
        } catch (UncheckedIOException error) {
            throw error.getCause();
        }
    }
}
