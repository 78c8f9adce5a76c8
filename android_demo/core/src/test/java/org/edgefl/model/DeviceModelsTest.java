package org.edgefl.model;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.edgefl.EdgeFLError;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.engine.InvalidGraph;
import org.edgefl.engine.OnnxEngine;
import org.edgefl.golden.GoldenTasks;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.training.Accuracy;
import org.edgefl.training.Trained;
import org.edgefl.training.Trainer;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.Tensor;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The personal and the shared model, as a screen reads them. */
class DeviceModelsTest {
    private final Engine engine = new OnnxEngine(1);
    private final SampleSpec spec = GoldenTasks.spec();
    private final LocalData data = GoldenTasks.data(0);

    @TempDir
    private Path home;
    private ModelFolder models;

    @BeforeEach
    void makeFolder() throws IOException {
        models = new ModelFolder(Files.createDirectory(home.resolve("model")));
        Files.createDirectory(home.resolve("cache"));
    }

    private static ClientPlan plan(int number) {
        return ClientPlan.of(JsonReader.object(JsonText.write(GoldenTasks.plan(number, Map.of()))));
    }

    private Path download(String digest) {
        Path file = home.resolve("cache").resolve(digest.substring(7));
        try {
            if (!Files.exists(file)) {
                Files.write(file, GoldenTasks.artifact(digest));
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return file;
    }

    private void keep(int number, Map<String, Tensor> own) throws IOException {
        ClientPlan plan = plan(number);
        models.replace(plan.taskId(), plan.round(), download(plan.inference()), download(plan.weights()), own, 42);
    }

    private Map<String, Tensor> downloaded(int number) throws IOException {
        return BodyReader.read(download(plan(number).weights())).dense();
    }

    @Test
    void bothModelsAnswerWithTheirOwnWeights() throws IOException {
        ClientPlan plan = plan(3);
        Trained trained =
            new Trainer(engine, data, this::download, home.resolve("checkpoint"), 1e9).train(plan, left -> { });
        keep(3, trained.result().own());
        try (DeviceModels found = DeviceModels.open(home, engine, spec)) {
            assertEquals(5, found.round());
            assertEquals(trained.accuracy(), found.personal().accuracy(data));
            assertEquals(trained.metrics().get("accuracy_before"), found.shared().accuracy(data));
            assertNotEquals(found.personal().accuracy(data), found.shared().accuracy(data));
            assertEquals(42, found.personal().parameters());
            assertEquals(found.shared().bytes(), found.personal().bytes());
            assertTrue(found.personal().medianSeconds() > 0);
        }
    }

    @Test
    void aGraphThatDoesNotAnswerToEverySampleIsInvalid() {
        Engine.Inference silent = new Engine.Inference() {
            @Override
            public float[][] outputs(Tensor x) {
                return new float[0][];
            }

            @Override
            public void cancel() {}

            @Override
            public void close() {}
        };
        assertThrows(InvalidGraph.class, () -> Accuracy.of(silent, data, () -> { }));
    }

    @Test
    void aRawSampleIsNormalisedAsInTraining() throws IOException {
        keep(0, downloaded(0));
        try (DeviceModels found = DeviceModels.open(home, engine, spec);
                Engine.Inference inference = engine.infer(download(plan(0).inference()), downloaded(0))) {
            List<String> answers = new ArrayList<>();
            for (int i = 0; i < 41; i++) {
                answers.add(Arrays.toString(found.personal().predict(GoldenTasks.rawSample(i)).probabilities()));
            }
            for (int i = 0; i < data.trainingSamples(); i++) {
                float[] logits = inference.outputs(data.x(new int[] {i}))[0];
                assertTrue(answers.contains(Arrays.toString(GraphPredictor.softmax(logits))), "sample " + i);
            }
            assertThrows(EdgeFLError.class, () -> found.personal().predict(new byte[3]));
        }
    }

    /** Android allows apps no hard links; between two disks nobody can make one. */
    @Test
    void whereThereAreNoLinksTheSharedModelIsACopy() throws IOException {
        Path elsewhere = Path.of("/dev/shm");
        assumeTrue(Files.isWritable(elsewhere)
            && !Files.getFileStore(elsewhere).equals(Files.getFileStore(home)), "a second disk");
        Path other = Files.createTempDirectory(elsewhere, "edgefl");
        Path weights = other.resolve("weights");
        try {
            ClientPlan plan = plan(0);
            Files.write(weights, GoldenTasks.artifact(plan.weights()));
            models.replace("task-1", 0, download(plan.inference()), weights, downloaded(0), 42);
        } finally {
            Files.deleteIfExists(weights);
            Files.delete(other);
        }
        try (DeviceModels found = DeviceModels.open(home, engine, spec)) {
            assertEquals(found.personal().bytes(), found.shared().bytes());
        }
    }

    @Test
    void largeOutputsDoNotOverflow() {
        assertArrayEquals(new float[] {1, 0, 0}, GraphPredictor.softmax(new float[] {3e38f, -3e38f, 0}));
        assertEquals(2, new Predictor.Prediction(new float[] {0.2f, 0.3f, 0.5f}, 1).best());
    }

    @Test
    void beforeTheFirstTaskThereAreNone() throws IOException {
        try (DeviceModels none = DeviceModels.open(home, engine, spec)) {
            assertNull(none.personal());
            assertNull(none.shared());
            assertEquals(0, none.round());
        }
    }

    /** Two tasks with models of different sizes take turns; whoever reads in between must get two of one size. */
    @Test
    void aReaderNeverMixesTwoTasks() throws IOException {
        Map<String, Tensor> whole = downloaded(0);
        Map<String, Tensor> narrow = downloaded(2);
        keep(0, whole);
        AtomicBoolean done = new AtomicBoolean();
        CompletableFuture<Void> writing = CompletableFuture.runAsync(() -> {
            try {
                for (int i = 0; !done.get(); i++) {
                    keep(i % 2 == 0 ? 2 : 0, i % 2 == 0 ? narrow : whole);
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        });
        try {
            for (int i = 0; i < 40; i++) {
                try (DeviceModels found = DeviceModels.open(home, engine, spec)) {
                    assertEquals(found.shared().bytes(), found.personal().bytes());
                    found.personal().predict(GoldenTasks.rawSample(i));
                }
            }
        } finally {
            done.set(true);
            writing.join();
        }
        // The graph, weights that are both personal and shared, and what says so: nothing else is left over.
        assertEquals(3, home.resolve("model").toFile().list().length);
    }
}
