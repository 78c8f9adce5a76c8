package org.edgefl.engine;

import java.io.Closeable;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.edgefl.rules.StepResult;
import org.edgefl.values.Submodel;
import org.edgefl.wire.Tensor;

/** Loads graphs (docs/graphs.md). */
public interface Engine {
    /** Its name and version, such as {@code onnxruntime 1.29.0}. */
    String description();

    /** The threads that it computes with. */
    int threads();

    /**
     * Load a training graph.
     *
     * @param weights the tensors that the graph reads in every step; changed in place between steps
     * @param labelMask one flag for every class, for graphs with that input
     */
    TrainStep train(Path graph, Submodel submodel, Map<String, Tensor> weights, float[] labelMask);

    /** Load an inference graph, whose outputs are logits. */
    Inference infer(Path graph, Map<String, Tensor> weights);

    /** Load a feature graph, whose outputs are what the model's last layer reads. */
    Inference features(Path graph, Map<String, Tensor> weights);

    /** One forward and backward pass over a batch. It changes nothing but its own result. */
    interface TrainStep extends Closeable {
        /**
         * Run the graph. The result is valid until the next run.
         *
         * @throws Cancelled if it was ended by {@link #cancel}
         */
        StepResult run(Tensor x, Tensor y, long seed);

        /** End a run under way, and every later one; from any thread, also after {@link #close}. */
        void cancel();

        @Override
        void close();
    }

    /** A forward pass over a batch. */
    interface Inference extends Closeable {
        /**
         * Return the outputs of every sample.
         *
         * @throws Cancelled if it was ended by {@link #cancel}
         */
        float[][] outputs(Tensor x);

        /** Return the number of the highest output of every sample; the first of equal ones. */
        default List<Integer> predict(Tensor x) {
            List<Integer> found = new ArrayList<>();
            for (float[] row : outputs(x)) {
                int best = 0;
                for (int i = 1; i < row.length; i++) {
                    best = row[i] > row[best] ? i : best;
                }
                found.add(best);
            }
            return found;
        }

        /** End a run under way, and every later one; from any thread, also after {@link #close}. */
        void cancel();

        @Override
        void close();
    }
}
