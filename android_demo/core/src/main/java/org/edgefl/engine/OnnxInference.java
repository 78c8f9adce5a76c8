package org.edgefl.engine;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.engine.Engine.Inference;
import org.edgefl.wire.Tensor;

/** A graph that runs forward, with its weights bound. */
final class OnnxInference implements Inference {
    private final OrtEnvironment environment;
    private final OnnxRuns runs;
    private final Map<String, OnnxTensor> bound;
    private final String output;

    OnnxInference(OrtEnvironment environment, OrtSession session, Map<String, Tensor> weights, String output)
            throws OrtException {
        this.environment = environment;
        this.output = output;
        this.bound = OnnxEngine.inputs(environment, session, weights, List.of("x"));
        this.runs = new OnnxRuns(session);
    }

    @Override
    public float[][] outputs(Tensor x) {
        Map<String, OnnxTensor> feed = new HashMap<>(bound);
        try (OnnxTensor samples = OnnxEngine.wrap(environment, x)) {
            feed.put("x", samples);
            try (OrtSession.Result result = runs.run(feed)) {
                return (float[][]) result.get(output).orElseThrow(
                    () -> new InvalidGraph("it has no output '" + output + "'")).getValue();
            }
        } catch (OrtException | ClassCastException error) {
            throw new InvalidGraph(error.getMessage(), error);
        }
    }

    @Override
    public void cancel() {
        runs.cancel();
    }

    @Override
    public void close() {
        runs.close(bound.values());
    }
}
