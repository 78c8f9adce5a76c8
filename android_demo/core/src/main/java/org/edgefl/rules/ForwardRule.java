package org.edgefl.rules;

import java.util.Arrays;
import java.util.Map;
import org.edgefl.values.Submodel.Payload;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.DType;
import org.edgefl.wire.Tensor;

/** Base class of rules that only run the model forward: their graph returns features, and they train nothing. */
public abstract class ForwardRule implements LocalRule {
    /** The layer that reads the features. */
    final LinearHead head;

    /** A rule for a model whose head is linear. */
    ForwardRule(Task task) {
        this.head = LinearHead.of(task.submodel());
    }

    /** Return whether it reads features; a rule that reads labels alone needs no graph. */
    public boolean readsFeatures() {
        return true;
    }

    @Override
    public Map<String, Tensor> forward(State state) {
        return state.weights();
    }

    @Override
    public void prepare(State state, int step) {
        // The weights are those that were downloaded.
    }

    /** Refuse a plan whose update must have anything but these float64 arrays. */
    static void checkSent(Task task, Map<String, long[]> known) {
        for (SubmodelTensor tensor : task.submodel().tensors()) {
            if (tensor.sent() != null) {
                throw new Unsupported("the update must have '" + tensor.name() + "', which the rule does not train");
            }
        }
        for (Payload payload : task.submodel().payloads()) {
            boolean fits = Arrays.equals(known.get(payload.name()), payload.shape())
                && payload.codec().equals("dense") && "float64".equals(payload.dtype());
            if (!fits) {
                throw new Unsupported("the update must have '" + payload.name() + "' in another form than the rule's");
            }
        }
    }

    /** Refuse an array of the plan that does not have the shape in which a rule reads it. */
    static void checkExtra(String name, Tensor array, long... shape) {
        if (array == null || array.dtype() != DType.F32 || !Arrays.equals(array.shape(), shape)) {
            throw new Unsupported("the plan's array '" + name + "' is missing, or not as the rule reads it");
        }
    }
}
