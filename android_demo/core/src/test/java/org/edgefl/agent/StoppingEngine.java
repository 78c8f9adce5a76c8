package org.edgefl.agent;

import java.nio.file.Path;
import java.util.Map;
import org.edgefl.engine.Engine;
import org.edgefl.rules.StepResult;
import org.edgefl.values.Submodel;
import org.edgefl.wire.Tensor;

/** An engine in which something happens at the beginning of a step: an agent is stopped while the graph runs. */
final class StoppingEngine implements Engine {
    private final Engine real;
    private final int at;
    private final Runnable event;
    private int steps;

    StoppingEngine(Engine real, int at, Runnable event) {
        this.real = real;
        this.at = at;
        this.event = event;
    }

    @Override
    public String description() {
        return real.description();
    }

    @Override
    public int threads() {
        return real.threads();
    }

    @Override
    public Inference infer(Path graph, Map<String, Tensor> weights) {
        return real.infer(graph, weights);
    }

    @Override
    public Inference features(Path graph, Map<String, Tensor> weights) {
        return real.features(graph, weights);
    }

    @Override
    public TrainStep train(Path graph, Submodel submodel, Map<String, Tensor> weights, float[] labelMask) {
        TrainStep step = real.train(graph, submodel, weights, labelMask);
        return new TrainStep() {
            @Override
            public StepResult run(Tensor x, Tensor y, long seed) {
                if (++steps == at) {
                    event.run();
                }
                return step.run(x, y, seed);
            }

            @Override
            public void cancel() {
                step.cancel();
            }

            @Override
            public void close() {
                step.close();
            }
        };
    }
}
