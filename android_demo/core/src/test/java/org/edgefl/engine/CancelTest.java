package org.edgefl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.edgefl.golden.GoldenTasks;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.values.ClientPlan;
import org.edgefl.values.Submodel;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.DType;
import org.edgefl.wire.Tensor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A graph that runs is ended from another thread. */
class CancelTest {
    private static final int LARGE = 20_000;

    @TempDir
    private Path folder;

    private Path file(String digest) throws IOException {
        return Files.write(folder.resolve(digest.substring(7)), GoldenTasks.artifact(digest));
    }

    private static ClientPlan plan() {
        return ClientPlan.of(JsonReader.object(JsonText.write(GoldenTasks.plan(0, Map.of()))));
    }

    private Engine.TrainStep load() throws IOException {
        Submodel submodel = Submodel.parse(GoldenTasks.artifact(plan().tensors()));
        Map<String, Tensor> weights = new LinkedHashMap<>(BodyReader.read(file(plan().weights())).dense());
        return new OnnxEngine(1).train(file(plan().graph()), submodel, weights, GoldenTasks.data(0).labelMask());
    }

    @Test
    void aStepUnderWayEndsAndNoneFollows() throws IOException, InterruptedException {
        Tensor x = Tensor.zeros(DType.F32, LARGE, 1, 4, 4);
        Tensor y = Tensor.zeros(DType.I64, LARGE);
        try (Engine.TrainStep graph = load()) {
            CountDownLatch begun = new CountDownLatch(1);
            CompletableFuture<Void> steps = CompletableFuture.runAsync(() -> {
                while (true) {
                    begun.countDown();
                    graph.run(x, y, 1);
                }
            });
            begun.await();
            graph.cancel();
            Throwable ended = assertThrows(Exception.class, steps::join).getCause();
            assertEquals(Cancelled.class, ended.getClass());
            assertThrows(Cancelled.class, () -> graph.run(x, y, 1));
        }
    }

    @Test
    void whatIsClosedCanStillBeCancelled() throws IOException {
        Engine.TrainStep graph = load();
        graph.close();
        graph.cancel();
        Engine.Inference inference = new OnnxEngine(1).infer(
            file(plan().inference()), BodyReader.read(file(plan().weights())).dense());
        inference.cancel();
        assertThrows(Cancelled.class, () -> inference.outputs(Tensor.zeros(DType.F32, 1, 1, 4, 4)));
        inference.close();
        inference.close();
        inference.cancel();
    }
}
