package org.edgefl.rules;

import java.nio.LongBuffer;
import java.util.HashMap;
import java.util.Map;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.Tensor;

/**
 * One pass over the samples, forward only, and the sum of the gradients of the cross-entropy by the head alone
 * (docs/rules.md).
 *
 * <p>The plan brings the head, as arrays with the names of its tensors. The model beside it is the one that is here for
 * its sums.
 */
public final class HeadGradients extends SummingRule {
    /** The name of the rule. */
    public static final String NAME = "head_gradients";

    private static final String GRADIENT = "sums/gradient";

    private final Map<String, Tensor> brought;

    /** The rule with its settings. */
    public HeadGradients(Settings settings, Task task) {
        super(settings, task);
        this.brought = task.extras();
        for (String name : brought.keySet()) {
            boolean isBias = head.bias() != null && name.equals(head.bias().name());
            SubmodelTensor tensor = isBias ? head.bias() : head.weight();
            checkExtra(name, name.equals(tensor.name()) ? brought.get(name) : null, tensor.shape());
        }
        sends(task, Map.of(GRADIENT, new long[] {head.size(), head.outputs()}));
    }

    @Override
    double mostAdded(double largest) {
        return Math.sqrt(2.0 * (largest * largest + 1.0)); // |p - y|^2 is at most 2
    }

    @Override
    Map<String, Tensor> headTensors(State state) {
        Map<String, Tensor> tensors = new HashMap<>(state.weights());
        tensors.putAll(brought);
        return tensors;
    }

    @Override
    void add(State state, double[][] rows, double[][] scores, LongBuffer labels) {
        double[] gradient = sum(state, GRADIENT);
        for (int i = 0; i < rows.length; i++) {
            double[] errors = scores[i].clone();
            int label = (int) labels.get(i);
            softmax(errors, label);
            errors[label] -= 1.0;
            int at = 0;
            for (double feature : rows[i]) {
                for (double error : errors) {
                    gradient[at++] += feature * error;
                }
            }
        }
        keep(state, GRADIENT, gradient);
    }
}
