package org.edgefl;

/**
 * An error that EdgeFL raises on purpose: what happened, with the offending value, and what to do.
 *
 * <pre>
 * EdgeFLError
 *   json.InvalidJson            text that is not the JSON that was asked for
 *   wire.InvalidBody            a body that breaks the wire format
 *   data.InvalidData            samples that do not fit the federation
 *   rules.Diverged              training left the finite numbers
 *   rules.Unsupported           something that a plan asks for and this client cannot do
 *   engine.InvalidGraph         a graph that breaks the contract, or that the engine cannot run
 *   values.TaskRefused          this device does not do a task, with a reason of the protocol
 *   http.InvalidPairing         a code or link that is not a pairing URI
 *   http.UntrustedCertificate   the coordinator is not who it should be: nothing was sent
 *   http.Unreachable            no usable response: try again later
 *   http.ProblemAnswer          the coordinator's own no
 * </pre>
 *
 * <p>What a stop ends is no error: {@code training.Interrupts.Stopped} and {@code engine.Cancelled} stand apart.
 */
public class EdgeFLError extends RuntimeException {
    private final String fix;

    /** An error without an underlying one. */
    public EdgeFLError(String problem, String fix) {
        this(problem, fix, null);
    }

    /** An error that another one caused. */
    public EdgeFLError(String problem, String fix, Throwable cause) {
        super(problem, cause);
        this.fix = fix;
    }

    /** What to do about it. */
    public String fix() {
        return fix;
    }
}
