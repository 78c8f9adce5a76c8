package org.edgefl.rules;

import java.nio.FloatBuffer;
import java.util.HashMap;
import java.util.Map;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.DType;
import org.edgefl.wire.PackedBits;
import org.edgefl.wire.Tensor;

/** One step of gradient descent for every trained tensor (docs/rules.md, "Gradient descent"), to the bit. */
final class GradientDescent {
    private final Task task;
    private final Schedule schedule;
    private final float momentum;
    private final boolean nesterov;
    private final float weightDecay;
    private final float proximal;
    private final Double clipNorm;
    private final Map<String, Tensor> downloaded = new HashMap<>();

    GradientDescent(Settings settings, Task task) {
        this.task = task;
        this.schedule = Schedule.of(settings);
        this.momentum = (float) settings.number("momentum", 0, 0, 1);
        this.nesterov = settings.flag("nesterov", false);
        this.weightDecay = (float) settings.number("weight_decay", 0, 0, Double.MAX_VALUE);
        this.proximal = (float) settings.number("proximal", 0, 0, Double.MAX_VALUE);
        this.clipNorm = settings.positiveOrNull("clip_norm");
    }

    /** Keep the weights as they were downloaded, if the proximal term needs them. */
    void begin(Map<String, Tensor> weights) {
        for (SubmodelTensor tensor : task.submodel().tensors()) {
            if (proximal != 0 && tensor.trained() && !tensor.isStatistic()) {
                downloaded.put(tensor.name(), weights.get(tensor.name()).copy());
            }
        }
    }

    double rate(int step) {
        return schedule.rate(task.round(), task.rounds(), step, task.steps());
    }

    /** Move every trained parameter; those in {@code updates} have their update moved, and not their weight. */
    void step(State state, int step, StepResult result, Map<String, Tensor> updates) {
        float factor = (float) clipping(result.gradients());
        float rate = (float) rate(step);
        for (SubmodelTensor tensor : task.submodel().tensors()) {
            Tensor gradient = result.gradients().get(tensor.name());
            if (tensor.trained() && tensor.isStatistic()) {
                adopt(state, tensor.name(), result.statistics().get(tensor.name()));
            } else if (tensor.trained() && gradient != null) {
                Tensor update = updates.get(tensor.name());
                Tensor moved = update == null ? state.weights().get(tensor.name()) : update;
                Tensor velocity = momentum == 0 ? null : state.remembered("momentum:" + tensor.name(), moved);
                FloatBuffer origin = proximal == 0 || update != null ? null : downloaded.get(tensor.name()).floats();
                move(moved.floats(), gradient.floats(), velocity, origin, task.held().get(tensor.name()), factor, rate);
            }
        }
    }

    private void move(FloatBuffer weights, FloatBuffer gradient, Tensor momenta, FloatBuffer origin, byte[] held,
            float factor, float rate) {
        FloatBuffer velocity = momenta == null ? null : momenta.floats();
        int count = weights.capacity();
        for (int i = 0; i < count; i++) {
            float w = weights.get(i);
            float d = gradient.get(i) * factor;
            if (weightDecay != 0) {
                d = d + w * weightDecay;
            }
            if (proximal != 0) {
                d = d + (origin == null ? w : w - origin.get(i)) * proximal;
            }
            if (held != null) {
                d = d * (PackedBits.get(held, i) ? 1f : 0f);
            }
            if (velocity != null) {
                float v = velocity.get(i) * momentum;
                v = v + d;
                velocity.put(i, v);
                d = nesterov ? d + v * momentum : v;
            }
            weights.put(i, w - d * rate);
        }
    }

    private void adopt(State state, String name, Tensor fresh) {
        Tensor old = state.weights().get(name);
        byte[] held = task.held().get(name);
        if (fresh == null || held == null) {
            if (fresh != null) {
                old.set(fresh);
            }
            return;
        }
        int bytes = old.dtype().bytes;
        for (int i = 0; i < old.size(); i++) {
            for (int b = 0; PackedBits.get(held, i) && b < bytes; b++) {
                old.bytes().put(i * bytes + b, fresh.bytes().get(i * bytes + b));
            }
        }
    }

    /** The factor of clipping: min(1, clip_norm / (norm of all gradients + 1e-6)), in double precision. */
    private double clipping(Map<String, Tensor> gradients) {
        if (clipNorm == null) {
            return 1;
        }
        double squares = 0.0;
        for (SubmodelTensor tensor : task.submodel().tensors()) {
            Tensor gradient = gradients.get(tensor.name());
            if (tensor.trained() && !tensor.isStatistic() && gradient != null && gradient.dtype() == DType.F32) {
                squares += Summation.sumOfSquares(gradient.floats(), task.held().get(tensor.name()));
            }
        }
        return Math.min(1, clipNorm / (Math.sqrt(squares) + 1e-6));
    }
}
