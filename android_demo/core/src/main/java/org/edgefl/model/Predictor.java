package org.edgefl.model;

import org.edgefl.data.LocalData;

/** A model that answers: a loaded inference graph with its weights. Not for several threads at once. */
public interface Predictor extends AutoCloseable {
    /**
     * One answer.
     *
     * @param probabilities one per class
     * @param seconds what the forward pass took
     */
    record Prediction(float[] probabilities, double seconds) {
        /** The class of the highest probability. */
        public int best() {
            int best = 0;
            for (int i = 1; i < probabilities.length; i++) {
                best = probabilities[i] > probabilities[best] ? i : best;
            }
            return best;
        }
    }

    /** Return the answer for one sample, in the federation's raw type and shape, row-major, little-endian. */
    Prediction predict(byte[] raw);

    /** Return the share of right answers on the samples that were held out, or null if there are none. */
    Double accuracy(LocalData data);

    /** The number of parameters, without running statistics. */
    long parameters();

    /** The bytes of its weights. */
    long bytes();

    /** Return the median seconds of a forward pass of one sample, over at least 30 runs after a first one. */
    double medianSeconds();

    @Override
    void close();
}
