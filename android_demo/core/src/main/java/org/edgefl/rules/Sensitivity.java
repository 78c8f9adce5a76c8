package org.edgefl.rules;

import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import org.edgefl.values.Submodel.Payload;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.DType;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Shape;
import org.edgefl.wire.Tensor;

/**
 * Sums of (weight x gradient)^2 over the training steps, by index along the axes that a plan names (docs/rules.md).
 *
 * <p>The coordinator prunes by them, so that this client needs no code for it and knows no channels.
 */
final class Sensitivity {
    private static final String PREFIX = "sensitivity/";
    private static final double LARGEST = 1e18;

    /** Sums along one axis: where they come from, and what they are called in the update. */
    private record Report(String name, SubmodelTensor tensor, int axis) {}

    private final List<Report> reports = new ArrayList<>();
    private final Set<String> observed = new LinkedHashSet<>();

    /** Read what a plan asks for: nothing without the setting, and then it may name no payload either. */
    Sensitivity(Settings settings, Task task) {
        boolean asked = settings.flag("sensitivity", false);
        Map<String, SubmodelTensor> tensors = new HashMap<>();
        task.submodel().tensors().forEach(tensor -> tensors.put(tensor.name(), tensor));
        for (Payload payload : task.submodel().payloads()) {
            Report report = asked ? report(payload, tensors) : null;
            if (report == null) {
                throw unknown(payload);
            }
            reports.add(report);
            observed.add(report.tensor().name());
        }
    }

    /** Refuse every payload, for a rule that sends nothing but tensors of the submodel. */
    static void refusePayloads(Task task) {
        if (!task.submodel().payloads().isEmpty()) {
            throw unknown(task.submodel().payloads().get(0));
        }
    }

    private static Unsupported unknown(Payload payload) {
        return new Unsupported("the update must have '" + payload.name() + "', which this client does not know");
    }

    /** Return what a payload asks for, or null if it is not the sums along an axis of a trained tensor. */
    private static Report report(Payload payload, Map<String, SubmodelTensor> tensors) {
        int slash = payload.name().indexOf('/', PREFIX.length());
        if (!payload.name().startsWith(PREFIX) || slash < 0
            || !payload.name().substring(PREFIX.length(), slash).matches("[0-9]{1,2}")) {
            return null;
        }
        int axis = Integer.parseInt(payload.name().substring(PREFIX.length(), slash));
        SubmodelTensor tensor = tensors.get(payload.name().substring(slash + 1));
        boolean fits = tensor != null && tensor.trained() && !tensor.isStatistic() && tensor.dtype() == DType.F32
            && axis < tensor.shape().length && payload.shape().length == 1
            && payload.shape()[0] == tensor.shape()[axis] && payload.shape()[0] <= Shape.size(tensor.shape())
            && payload.codec().equals("dense") && "float32".equals(payload.dtype());
        return fits ? new Report(payload.name(), tensor, axis) : null;
    }

    /** Add the squares of a step, given the weights that the graph ran with. */
    void observe(State state, Map<String, Tensor> weights, StepResult result) {
        for (String name : observed) {
            Tensor gradient = result.gradients().get(name);
            if (gradient != null) {
                Tensor sums = state.remembered("sensitivity:" + name, weights.get(name));
                add(sums.floats(), weights.get(name).floats(), gradient.floats());
            }
        }
    }

    private static void add(FloatBuffer sums, FloatBuffer weights, FloatBuffer gradient) {
        for (int i = 0; i < sums.capacity(); i++) {
            float p = weights.get(i) * gradient.get(i);
            p = p * p;
            sums.put(i, Math.min(p + sums.get(i), (float) LARGEST));
        }
    }

    /** Add the sums to what is sent. */
    void report(State state, SortedMap<String, Encoded> sent) {
        for (Report report : reports) {
            Tensor made = Tensor.zeros(DType.F32, report.tensor().shape()[report.axis()]);
            Tensor sums = state.memory().get("sensitivity:" + report.tensor().name());
            if (sums != null) {
                addUp(sums.floats(), report, made.floats());
            }
            if (!made.isFinite()) {
                throw new Diverged("the gradient of '" + report.tensor().name() + "' is no longer finite");
            }
            sent.put(report.name(), new Encoded.Dense(made));
        }
    }

    /** Add up entries of equal index along the axis, one after the other in row-major order. */
    private static void addUp(FloatBuffer sums, Report report, FloatBuffer made) {
        long[] shape = report.tensor().shape();
        double[] totals = new double[(int) shape[report.axis()]];
        int after = 1;
        for (int axis = report.axis() + 1; axis < shape.length; axis++) {
            after *= (int) shape[axis];
        }
        for (int i = 0; i < Shape.size(shape); i++) {
            totals[i / after % totals.length] += sums.get(i);
        }
        for (int index = 0; index < totals.length; index++) {
            made.put(index, (float) Math.min(totals[index], LARGEST));
        }
    }
}
