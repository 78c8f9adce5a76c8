package org.edgefl.app.screens;

import org.edgefl.data.LocalData;
import org.edgefl.model.Predictor;

/**
 * What a model is like on this phone.
 *
 * @param accuracy on the owner's held-out samples, or null if there are none
 * @param heldOut how many those are
 */
record ModelFacts(long parameters, long bytes, double medianSeconds, Double accuracy, int heldOut) {
    /** Measure a model; null if there is none. Slow: for a background thread. */
    static ModelFacts of(Predictor model, LocalData held) {
        return model == null ? null : new ModelFacts(model.parameters(), model.bytes(), model.medianSeconds(),
            held == null ? null : model.accuracy(held), held == null ? 0 : held.validationSamples());
    }
}
