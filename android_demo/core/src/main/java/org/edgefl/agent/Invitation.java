package org.edgefl.agent;

import org.edgefl.EdgeFLError;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.Meter;
import org.edgefl.http.Pairing;
import org.edgefl.http.Unreachable;
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

    /**
     * Ask a coordinator once. Nothing is enrolled, and nothing is written.
     *
     * @throws EdgeFLError if there is no key, no answer, no trust, or the coordinator's own no
     */
    public static Invitation ask(Pairing pairing, Agent.Connector connector) {
        if (pairing.key() == null) {
            throw new EdgeFLError("the code has no join key", "Ask the operator for a code with a key.");
        }
        CoordinatorClient client =
            new CoordinatorClient(connector.connect(pairing.url(), pairing.pins(), Meter.NONE));
        try {
            CoordinatorClient.Told told = client.sampleAndPin(pairing.key());
            if (told.document() == null) {
                throw new EdgeFLError("the coordinator cannot say what a sample is: it is older than this client",
                    "Ask the operator to update the coordinator.");
            }
            return new Invitation(pairing, SampleSpec.of(told.document()), trust(pairing), told.pin());
        } catch (Unreachable error) {
            throw new EdgeFLError("the coordinator does not answer: " + error.getMessage(),
                "Check that this device is in a network that reaches " + pairing.url() + ", and try again.", error);
        }
    }

    private static Trust trust(Pairing pairing) {
        if (pairing.url().startsWith("http://")) {
            return Trust.PLAIN;
        }
        return pairing.pins().isEmpty() ? Trust.AUTHORITY : Trust.PINNED;
    }
}
