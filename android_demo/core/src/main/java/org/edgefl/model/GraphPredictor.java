package org.edgefl.model;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.SortedMap;
import org.edgefl.data.LocalData;
import org.edgefl.data.SampleTensors;
import org.edgefl.engine.Engine;
import org.edgefl.engine.InvalidGraph;
import org.edgefl.training.Accuracy;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.Tensor;

/** A predictor on the engine that trains. Its weights are in memory once, as the file has them. */
final class GraphPredictor implements Predictor {
    private static final int MEASURED_RUNS = 30;

    private final SampleSpec spec;
    private final Engine.Inference inference;
    private final long parameters;
    private final long bytes;

    private GraphPredictor(SampleSpec spec, Engine.Inference inference, long parameters, long bytes) {
        this.spec = spec;
        this.inference = inference;
        this.parameters = parameters;
        this.bytes = bytes;
    }

    /** Load an inference graph, which is checked before the engine sees it, and its weights. */
    static GraphPredictor load(Engine engine, Path graph, Path weights, SampleSpec spec, long parameters)
            throws IOException {
        SortedMap<String, Tensor> tensors = BodyReader.read(weights).dense();
        long bytes = tensors.values().stream().mapToLong(tensor -> tensor.bytes().remaining()).sum();
        return new GraphPredictor(spec, engine.infer(graph, tensors), parameters, bytes);
    }

    @Override
    public Prediction predict(byte[] raw) {
        Tensor x = SampleTensors.ofRaw(raw, spec);
        long start = System.nanoTime();
        float[][] logits = inference.outputs(x);
        double seconds = (System.nanoTime() - start) / 1e9;
        if (logits.length != 1 || logits[0].length != spec.classes()) {
            throw new InvalidGraph("it does not answer with one number per class");
        }
        return new Prediction(softmax(logits[0]), seconds);
    }

    /** Probabilities from outputs, in double precision; the highest is taken off first, so that nothing overflows. */
    static float[] softmax(float[] logits) {
        double highest = Double.NEGATIVE_INFINITY;
        for (float logit : logits) {
            highest = Math.max(highest, logit);
        }
        double sum = 0;
        double[] powers = new double[logits.length];
        for (int i = 0; i < logits.length; i++) {
            powers[i] = Math.exp(logits[i] - highest);
            sum += powers[i];
        }
        float[] probabilities = new float[logits.length];
        for (int i = 0; i < logits.length; i++) {
            probabilities[i] = (float) (powers[i] / sum);
        }
        return probabilities;
    }

    @Override
    public Double accuracy(LocalData data) {
        return Accuracy.of(inference, data, () -> { });
    }

    @Override
    public long parameters() {
        return parameters;
    }

    @Override
    public long bytes() {
        return bytes;
    }

    @Override
    public double medianSeconds() {
        Tensor x = SampleTensors.zeros(spec, 1);
        inference.outputs(x);
        double[] seconds = new double[MEASURED_RUNS];
        for (int i = 0; i < MEASURED_RUNS; i++) {
            long start = System.nanoTime();
            inference.outputs(x);
            seconds[i] = (System.nanoTime() - start) / 1e9;
        }
        Arrays.sort(seconds);
        return (seconds[MEASURED_RUNS / 2 - 1] + seconds[MEASURED_RUNS / 2]) / 2;
    }

    @Override
    public void close() {
        inference.close();
    }
}
