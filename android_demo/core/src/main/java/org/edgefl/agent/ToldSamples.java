package org.edgefl.agent;

import org.edgefl.http.ProblemAnswer;

/** What the coordinator knows of the number of this device's training samples: it plans tasks by it. */
final class ToldSamples {
    /** There is no number, or it is not known. */
    static final int NONE = -1;

    private final Patience patience;
    private int told = NONE;

    ToldSamples(Patience patience) {
        this.patience = patience;
    }

    /** The enrolment said it, or did not: then it is {@link #NONE}. */
    void enrolledWith(int samples) {
        told = samples;
    }

    /** The result will say it. If it is another number, the next poll begins with what is true then. */
    void trainedOn(int samples) {
        if (samples != told) {
            told = NONE;
        }
    }

    /** Tell it, unless the coordinator knows. One that is older than this question learns it from results. */
    void tell(String token, int samples) {
        if (samples == told) {
            return;
        }
        try {
            patience.until(client -> {
                client.putSamples(token, samples);
                return true;
            });
        } catch (ProblemAnswer problem) {
            if (problem.isDenied()) {
                throw problem;
            }
        }
        told = samples;
    }
}
