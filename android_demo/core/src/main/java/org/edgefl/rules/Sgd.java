package org.edgefl.rules;

import java.util.HashMap;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Names;
import org.edgefl.wire.PackedBits;
import org.edgefl.wire.Shape;
import org.edgefl.wire.Tensor;

/** Gradient descent on the trained tensors: FedAvg, FedProx, HeteroFL, PerFedMask and others (docs/rules.md). */
public final class Sgd extends DescentRule {
    private final Task task;
    private final Sensitivity sensitivity;

    /** The rule with its settings. */
    public Sgd(Settings settings, Task task) {
        super(settings, task);
        this.task = task;
        this.sensitivity = new Sensitivity(settings, task);
        settings.choice("codec", "dense", "sparse");
        settings.end();
    }

    @Override
    public double step(State state, int step, StepResult result, Tensor labels) {
        sensitivity.observe(state, state.weights(), result);
        return super.step(state, step, result, labels);
    }

    @Override
    public RuleResult finish(State state) {
        SortedMap<String, Encoded> sent = new TreeMap<>(Names.UTF8_ORDER);
        for (SubmodelTensor tensor : task.submodel().tensors()) {
            if (tensor.sent() != null) {
                Tensor weights = state.weights().get(tensor.name());
                sent.put(tensor.name(), encoded(tensor, weights, task.held().get(tensor.name())));
            }
        }
        sensitivity.report(state, sent);
        Map<String, Double> metrics = new HashMap<>();
        metrics.put("learning_rate", descent.rate(Math.max(task.steps() - 1, 0)));
        return new RuleResult(sent, state.weights(), metrics);
    }

    /** Return a tensor in the form in which the plan wants it, or refuse the plan. */
    static Encoded encoded(SubmodelTensor tensor, Tensor weights, byte[] held) {
        if (!weights.isFinite()) {
            throw new Diverged("'" + tensor.name() + "' is no longer finite");
        }
        if (tensor.sent().equals("dense")) {
            return new Encoded.Dense(weights);
        }
        if (tensor.sent().equals("sparse") && held != null) {
            return sparse(weights, held);
        }
        throw new Unsupported("'" + tensor.name() + "' must be sent as '" + tensor.sent() + "', which this client cannot");
    }

    /** Exactly the held entries, also where their value is 0. */
    private static Encoded sparse(Tensor weights, byte[] held) {
        int[] positions = new int[PackedBits.count(held)];
        Tensor values = Tensor.zeros(weights.dtype(), positions.length);
        int size = weights.dtype().bytes;
        int found = 0;
        for (int i = 0; i < Shape.size(weights.shape()); i++) {
            if (PackedBits.get(held, i)) {
                for (int b = 0; b < size; b++) {
                    values.bytes().put(found * size + b, weights.bytes().get(i * size + b));
                }
                positions[found++] = i;
            }
        }
        return new Encoded.Sparse(weights.shape(), positions, values);
    }
}
