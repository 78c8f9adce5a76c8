package org.edgefl.agent;

import java.util.function.Function;
import org.edgefl.data.LocalData;
import org.edgefl.values.SampleSpec;

/** The device's samples as they are now: its owner may add and delete some between two tasks. */
final class OwnSamples {
    private final Function<SampleSpec, LocalData> source;
    private SampleSpec spec;
    private LocalData latest;

    OwnSamples(Function<SampleSpec, LocalData> source) {
        this.source = source;
    }

    /** Read them for what the federation says a sample is; those that do not fit are an error. */
    void check(SampleSpec federations) {
        spec = federations;
        anew();
    }

    /** Return whether there were any when they were read last; if there were none, look again. */
    boolean areThere() {
        return latest != null || anew() != null;
    }

    /** Return the number of training samples when they were read last; {@link ToldSamples#NONE} if there were none. */
    int count() {
        return latest == null ? ToldSamples.NONE : latest.trainingSamples();
    }

    /** A task has ended: what was read for it says nothing about the next, and need not stay in memory. */
    void forget() {
        latest = null;
    }

    /** Read them again; null if there are none. */
    LocalData anew() {
        latest = source.apply(spec);
        return latest;
    }
}
