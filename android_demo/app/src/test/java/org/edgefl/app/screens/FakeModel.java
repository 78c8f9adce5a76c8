package org.edgefl.app.screens;

import org.edgefl.data.LocalData;
import org.edgefl.model.Predictor;

/** A model whose answer depends on how much ink it sees, so that another question has another answer. */
final class FakeModel implements Predictor {
    private final int favourite;
    private final long parameters;
    private final float certainty;
    int asked;
    boolean closed;

    FakeModel(int favourite, long parameters, float certainty) {
        this.certainty = certainty;
        this.favourite = favourite;
        this.parameters = parameters;
    }

    @Override
    public Prediction predict(byte[] raw) {
        asked++;
        float ink = 0;
        for (byte value : raw) {
            ink += (value & 255) / 255f / raw.length;
        }
        float[] shares = new float[10];
        shares[favourite] = certainty - ink;
        shares[1] = 0.6f * (1 - certainty + ink);
        shares[9] = 0.4f * (1 - certainty + ink);
        return new Prediction(shares, 0.0021);
    }

    @Override
    public Double accuracy(LocalData data) {
        return data == null ? null : (Double) 0.9;
    }

    @Override
    public long parameters() {
        return parameters;
    }

    @Override
    public long bytes() {
        return 4 * parameters;
    }

    @Override
    public double medianSeconds() {
        return 0.00213;
    }

    @Override
    public void close() {
        closed = true;
    }
}
