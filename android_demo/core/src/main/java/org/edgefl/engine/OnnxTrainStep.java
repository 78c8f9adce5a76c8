package org.edgefl.engine;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.TensorInfo;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.edgefl.engine.Engine.TrainStep;
import org.edgefl.rules.StepResult;
import org.edgefl.rules.Unsupported;
import org.edgefl.values.Submodel;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.DType;
import org.edgefl.wire.Tensor;

/** A training graph whose weights and results lie in memory that is allocated once. */
final class OnnxTrainStep implements TrainStep {
    private static final List<String> NOT_WEIGHTS = List.of("x", "y", "seed", "label_mask");

    private final OrtEnvironment environment;
    private final OrtSession session;
    private final OnnxRuns runs;
    private final Map<String, OnnxTensor> bound;
    private final Map<String, OnnxTensor> outputs = new LinkedHashMap<>();
    private final Map<String, Tensor> gradients = new HashMap<>();
    private final Map<String, Tensor> statistics = new HashMap<>();
    private final Tensor loss = Tensor.zeros(DType.F32);
    private final Tensor seed = Tensor.zeros(DType.I64);

    OnnxTrainStep(OrtEnvironment environment, OrtSession session, Submodel submodel, Map<String, Tensor> weights,
            float[] labelMask) throws OrtException {
        this.environment = environment;
        this.session = session;
        this.bound = OnnxEngine.inputs(environment, session, weights, NOT_WEIGHTS);
        Set<String> inputs = session.getInputNames();
        if (inputs.contains("seed")) {
            if (((TensorInfo) session.getInputInfo().get("seed").getInfo()).type != OnnxJavaType.INT64) {
                throw new Unsupported("the graph takes its seed as an unsigned number, which Java does not have");
            }
            bound.put("seed", OnnxEngine.wrap(environment, seed));
        }
        if (inputs.contains("label_mask")) {
            bound.put("label_mask", OnnxEngine.wrap(environment, Tensor.ofFloats(labelMask, labelMask.length)));
        }
        bindOutputs(submodel);
        this.runs = new OnnxRuns(session);
    }

    private void bindOutputs(Submodel submodel) throws OrtException {
        Set<String> names = session.getOutputNames();
        if (!names.contains("loss")) {
            throw new InvalidGraph("it has no output 'loss'");
        }
        outputs.put("loss", OnnxEngine.wrap(environment, loss));
        for (SubmodelTensor tensor : submodel.tensors()) {
            String name = (tensor.isStatistic() ? "new:" : "grad:") + tensor.name();
            if (tensor.trained() && names.contains(name)) {
                Tensor result = Tensor.zeros(tensor.dtype(), tensor.shape());
                (tensor.isStatistic() ? statistics : gradients).put(tensor.name(), result);
                outputs.put(name, OnnxEngine.wrap(environment, result));
            }
        }
    }

    @Override
    public StepResult run(Tensor x, Tensor y, long batchSeed) {
        Map<String, OnnxTensor> feed = new HashMap<>(bound);
        seed.longs().put(0, batchSeed);
        try (OnnxTensor samples = OnnxEngine.wrap(environment, x); OnnxTensor labels = OnnxEngine.wrap(environment, y)) {
            feed.put("x", samples);
            feed.put("y", labels);
            runs.run(feed, outputs);
        } catch (OrtException error) {
            throw new InvalidGraph(error.getMessage(), error);
        }
        return new StepResult(loss.floats().get(0), gradients, statistics);
    }

    @Override
    public void cancel() {
        runs.cancel();
    }

    @Override
    public void close() {
        List<OnnxTensor> all = new ArrayList<>(bound.values());
        all.addAll(outputs.values());
        runs.close(all);
    }
}
