package org.edgefl.profile;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.engine.Engine;
import org.edgefl.json.JsonReader;
import org.edgefl.noise.Noise;
import org.edgefl.rules.LocalRule;
import org.edgefl.rules.Settings;
import org.edgefl.rules.State;
import org.edgefl.rules.Task;
import org.edgefl.values.SampleSpec;
import org.edgefl.values.Submodel;
import org.edgefl.wire.DType;
import org.edgefl.wire.Tensor;

/** A graph of the measurement, loaded once, and steps of it at several batch sizes. */
final class MeasuredCase implements AutoCloseable {
    private static final String STEP = "{\"learning_rate\": 0.000001, \"momentum\": 0.9, \"weight_decay\": 0.0005}";

    private final Engine.TrainStep graph;
    private final LocalRule rule;
    private final State state;
    private final SampleSpec spec;
    private final Map<Integer, Tensor[]> batches = new HashMap<>();
    private final Map<Integer, List<Double>> times = new HashMap<>();

    MeasuredCase(Engine engine, Path file, Submodel submodel, Map<String, Tensor> weights, SampleSpec spec) {
        this.spec = spec;
        this.state = State.of(weights);
        Task task = new Task(submodel, Map.of(), 1, 0, 1, 1);
        this.rule = LocalRule.of("sgd", new Settings(JsonReader.object(STEP)), task);
        float[] everyClass = new float[spec.classes()];
        Arrays.fill(everyClass, 1);
        this.graph = engine.train(file, submodel, rule.forward(state), everyClass);
    }

    /** Time one step of a batch size, in seconds. */
    double step(int batchSize) {
        Tensor[] batch = batches.computeIfAbsent(batchSize, this::batch);
        long start = System.nanoTime();
        rule.step(state, 0, graph.run(batch[0], batch[1], 1), batch[1]);
        return (System.nanoTime() - start) / 1e9;
    }

    void note(int batchSize, double seconds) {
        times.computeIfAbsent(batchSize, made -> new ArrayList<>()).add(seconds);
    }

    /** Return the median of the noted steps, or 0 if there are none. */
    double median(int batchSize) {
        List<Double> noted = times.getOrDefault(batchSize, List.of());
        return noted.isEmpty() ? 0 : CostFit.median(noted.stream().mapToDouble(Double::doubleValue).toArray());
    }

    private Tensor[] batch(int size) {
        long[] shape = new long[spec.shape().length + 1];
        shape[0] = size;
        System.arraycopy(spec.shape(), 0, shape, 1, spec.shape().length);
        boolean whole = spec.dtype().equals("int64");
        Tensor x = Tensor.zeros(whole ? DType.I64 : DType.F32, shape);
        for (int i = 0; i < x.size(); i++) {
            if (whole) {
                x.longs().put(i, Long.remainderUnsigned(Noise.bits(1, i), spec.classes()));
            } else {
                x.floats().put(i, Noise.symmetric(1, i, 1f));
            }
        }
        Tensor y = Tensor.zeros(DType.I64, size);
        for (int i = 0; i < size; i++) {
            y.longs().put(i, Long.remainderUnsigned(Noise.bits(2, i), spec.classes()));
        }
        return new Tensor[] {x, y};
    }

    @Override
    public void close() {
        graph.close();
    }
}
