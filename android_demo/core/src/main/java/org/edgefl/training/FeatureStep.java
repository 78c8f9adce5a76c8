package org.edgefl.training;

import org.edgefl.engine.Engine;
import org.edgefl.rules.StepResult;
import org.edgefl.wire.Tensor;

/** A forward pass in the place of a training step, for rules that only run the model forward. */
final class FeatureStep implements Engine.TrainStep {
    private static final Engine.Inference NOTHING = new Engine.Inference() {
        @Override
        public float[][] outputs(Tensor x) {
            return new float[0][];
        }

        @Override
        public void cancel() {
            // No run takes any time.
        }

        @Override
        public void close() {
            // There is nothing to free.
        }
    };

    private final Engine.Inference graph;

    private FeatureStep(Engine.Inference graph) {
        this.graph = graph;
    }

    /** The features that a graph returns. The loss is the rule's business: it knows the head. */
    static FeatureStep of(Engine.Inference graph) {
        return new FeatureStep(graph);
    }

    /** No features, for a rule that reads labels alone. */
    static FeatureStep ofNothing() {
        return new FeatureStep(NOTHING);
    }

    @Override
    public StepResult run(Tensor x, Tensor y, long seed) {
        return new StepResult(graph.outputs(x));
    }

    @Override
    public void cancel() {
        graph.cancel();
    }

    @Override
    public void close() {
        graph.close();
    }
}
