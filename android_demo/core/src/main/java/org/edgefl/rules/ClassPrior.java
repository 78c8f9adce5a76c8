package org.edgefl.rules;

import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.edgefl.wire.DType;
import org.edgefl.wire.Names;
import org.edgefl.wire.Tensor;

/**
 * A personal head without training: the device's own shares of the classes go into the bias (docs/rules.md).
 *
 * <p>It reads the labels alone. Nothing is sent.
 */
public final class ClassPrior extends ForwardRule {
    /** The name of the rule. */
    public static final String NAME = "class_prior";

    private static final String SHARES = "shares";
    private static final String COUNTS = "counts";

    private final double leastShare;
    private final Tensor shares;

    /** The rule with its settings. */
    public ClassPrior(Settings settings, Task task) {
        super(task);
        this.leastShare = settings.number("least_share", 1e-6, 1e-12, 0.5);
        settings.end();
        if (head.bias() == null) {
            throw new Unsupported("the head has no bias, into which the shares of the classes would go");
        }
        this.shares = task.extras().get(SHARES);
        checkExtra(SHARES, shares, head.outputs());
        checkSent(task, Map.of());
    }

    @Override
    public boolean readsFeatures() {
        return false;
    }

    @Override
    public double step(State state, int step, StepResult result, Tensor labels) {
        DoubleBuffer counts =
            state.memory().computeIfAbsent(COUNTS, made -> Tensor.zeros(DType.F64, head.outputs())).doubles();
        for (int i = 0; i < labels.size(); i++) {
            int label = (int) labels.longs().get(i);
            counts.put(label, counts.get(label) + 1.0);
        }
        return 0;
    }

    @Override
    public RuleResult finish(State state) {
        DoubleBuffer counts = state.memory().get(COUNTS).doubles();
        double samples = 0.0;
        for (int label = 0; label < head.outputs(); label++) {
            samples += counts.get(label);
        }
        Tensor bias = state.weights().get(head.bias().name()).copy();
        FloatBuffer shifted = bias.floats();
        for (int label = 0; label < head.outputs(); label++) {
            double own = Math.max(counts.get(label) / samples, leastShare);
            double everyone = Math.max(shares.floats().get(label), leastShare);
            shifted.put(label, (float) (shifted.get(label) + Math.log(own / everyone)));
        }
        Map<String, Tensor> weights = new LinkedHashMap<>(state.weights());
        weights.put(head.bias().name(), bias);
        return new RuleResult(new TreeMap<>(Names.UTF8_ORDER), weights, new HashMap<>());
    }
}
