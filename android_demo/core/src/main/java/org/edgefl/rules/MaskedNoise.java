package org.edgefl.rules;

import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.noise.Noise;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.Names;
import org.edgefl.wire.PackedBits;
import org.edgefl.wire.Tensor;

/**
 * FedMRN: learns one bit per weight that selects from random noise, and sends the bits (docs/rules.md).
 *
 * <p>The noise is computed again wherever it is needed, so that only the update u is kept beside the weights.
 */
public final class MaskedNoise implements LocalRule {
    private static final float LEAST_NOISE = (float) 1e-8;

    private final Task task;
    private final GradientDescent descent;
    private final Sensitivity sensitivity;
    private final boolean signed;
    private final boolean stochastic;
    private final boolean progressive;
    private final float bound;
    private final long draws;
    private final List<SubmodelTensor> masked = new ArrayList<>();
    private final Map<String, Tensor> forward = new LinkedHashMap<>();
    private long words;

    /** The rule with its settings. */
    public MaskedNoise(Settings settings, Task task) {
        this.task = task;
        this.descent = new GradientDescent(settings, task);
        this.sensitivity = new Sensitivity(settings, task);
        this.signed = settings.choice("masks", "binary", "signed").equals("signed");
        Double given = settings.positiveOrNull("bound");
        this.bound = (float) (given != null ? given : signed ? 0.005 : 0.01);
        String masking = settings.choice(
            "masking", "progressive_stochastic", "stochastic", "progressive", "deterministic");
        this.stochastic = masking.endsWith("stochastic");
        this.progressive = masking.startsWith("progressive");
        this.draws = Noise.derive(task.seed(), "draws");
        settings.end();
        for (SubmodelTensor tensor : task.submodel().tensors()) {
            boolean matrix = tensor.role().equals("weight") || tensor.role().equals("head");
            if (tensor.trained() && matrix && tensor.shape().length >= 2) {
                masked.add(tensor);
            }
        }
    }

    @Override
    public Map<String, Tensor> forward(State state) {
        if (forward.isEmpty()) {
            descent.begin(state.weights());
            forward.putAll(state.weights());
            for (SubmodelTensor tensor : masked) {
                Tensor weights = state.weights().get(tensor.name());
                words += (weights.size() + 1) / 2;
                forward.put(tensor.name(), weights.copy());
                state.remembered("update:" + tensor.name(), weights);
            }
        }
        return forward;
    }

    @Override
    public void prepare(State state, int step) {
        double share = progressive ? Math.min((step + 1.0) / task.steps(), 1) : 1;
        draw(state, step, share, null);
    }

    @Override
    public double step(State state, int step, StepResult result, Tensor labels) {
        sensitivity.observe(state, forward, result);
        Map<String, Tensor> updates = new HashMap<>();
        for (SubmodelTensor tensor : masked) {
            updates.put(tensor.name(), state.memory().get("update:" + tensor.name()));
        }
        descent.step(state, step, result, updates);
        return result.loss();
    }

    @Override
    public RuleResult finish(State state) {
        for (SubmodelTensor tensor : masked) {
            if (!state.memory().get("update:" + tensor.name()).isFinite()) {
                throw new Diverged("the update of '" + tensor.name() + "' is no longer finite");
            }
        }
        Map<String, byte[]> bits = new HashMap<>();
        draw(state, task.steps(), 1, bits);
        SortedMap<String, Encoded> sent = new TreeMap<>(Names.UTF8_ORDER);
        long ones = 0;
        long all = 0;
        for (SubmodelTensor tensor : task.submodel().tensors()) {
            byte[] packed = bits.get(tensor.name());
            if (packed != null) {
                sent.put(tensor.name(), new Encoded.Bits(tensor.shape(), packed));
                ones += PackedBits.count(packed);
                all += state.weights().get(tensor.name()).size();
            } else if (tensor.sent() != null) {
                Tensor weights = state.weights().get(tensor.name());
                sent.put(tensor.name(), Sgd.encoded(tensor, weights, task.held().get(tensor.name())));
            }
        }
        sensitivity.report(state, sent);
        Map<String, Double> metrics = new HashMap<>();
        metrics.put("ones", all == 0 ? 0 : (double) ones / all);
        return new RuleResult(sent, forward, metrics);
    }

    /** Write the weights of the forward pass, and the bits that are 1 into {@code bits} if that is given. */
    private void draw(State state, int step, double share, Map<String, byte[]> bits) {
        long word = step * words;
        for (SubmodelTensor tensor : masked) {
            Tensor weights = state.weights().get(tensor.name());
            byte[] ones = bits == null ? null : new byte[PackedBits.bytes(weights.size())];
            drawTensor(tensor, weights, state.memory().get("update:" + tensor.name()).floats(), word, share, ones);
            word += (weights.size() + 1) / 2;
            if (bits != null) {
                bits.put(tensor.name(), ones);
            }
        }
    }

    private void drawTensor(
            SubmodelTensor tensor, Tensor weights, FloatBuffer update, long word, double share, byte[] ones) {
        FloatBuffer from = weights.floats();
        FloatBuffer to = forward.get(tensor.name()).floats();
        byte[] held = task.held().get(tensor.name());
        long noise = Noise.derive(task.seed(), "noise", tensor.name());
        float limit = (float) (share * 0x1p24);
        float lowest = signed ? -1f : 0f;
        long random = 0;
        for (int i = 0; i < from.capacity(); i++) {
            random = i % 2 == 0 ? Noise.bits(draws, word + i / 2) : random >>> 32;
            float v = (float) ((random & 0xffffffffL) >>> 8);
            float n = Noise.symmetric(noise, i, bound);
            n = Math.abs(n) < LEAST_NOISE ? LEAST_NOISE : n;
            float r = update.get(i) / n;
            r = r > lowest ? r : lowest;
            r = r < 1f ? r : 1f;
            boolean has = held == null || PackedBits.get(held, i);
            // The last draw is what is sent: its bit is 0 where the mask does not hold the entry.
            float m = isOne(r, v, limit) && (has || ones == null) ? 1f : 0f;
            if (signed) {
                m = m * 2f - 1f;
            }
            float f = m;
            if (share < 1) {
                f = v < limit ? r * 0f + m : r * 1f + 0f;
            }
            f = f * n;
            f = has ? f : f * 0f;
            to.put(i, from.get(i) + f);
            if (ones != null && m == 1f) {
                PackedBits.set(ones, i);
            }
        }
    }

    private boolean isOne(float r, float v, float limit) {
        if (!stochastic) {
            return r > 0f && v < limit;
        }
        return signed ? v < (r + 1f) * (limit / 2f) : v < r * limit;
    }
}
