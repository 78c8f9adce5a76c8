package org.edgefl.agent;

import org.edgefl.http.Pairing;
import org.edgefl.values.SampleSpec;

/**
 * What a coordinator wants, asked before anything is joined or kept.
 *
 * @param sample what a sample of the federation is
 * @param trust how the coordinator was recognised
 * @param pin the pin of the key that it answered with; null over plain HTTP
 */
public record Invitation(Pairing pairing, SampleSpec sample, Trust trust, String pin) {
    /** How a coordinator is recognised. */
    public enum Trust {
        /** By the key that the pairing URI names. */
        PINNED,
        /** By an authority that the system trusts. */
        AUTHORITY,
        /** Not at all: plain HTTP, which only this machine may use. */
        PLAIN
    }
}
