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
 *   agent.TaskRefused           this device does not do a task, with a reason of the protocol
 *   http.Unreachable            no usable response: try again later
 *   http.ProblemAnswer          the coordinator's own no
 * </pre>
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
