package org.edgefl.app.phone;

import org.edgefl.model.Predictor;

/**
 * The models on this phone, to be compared.
 *
 * @param personal trained here, or null before the first task
 * @param shared as it was downloaded for the last task, or null before it
 */
public record ModelPair(Predictor personal, Predictor shared) implements AutoCloseable {
    @Override
    public void close() {
        if (personal != null) {
            personal.close();
        }
        if (shared != null) {
            shared.close();
        }
    }
}
