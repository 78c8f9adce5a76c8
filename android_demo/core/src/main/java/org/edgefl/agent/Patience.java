package org.edgefl.agent;

import java.util.function.Function;
import org.edgefl.EdgeFLError;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.Unreachable;
import org.edgefl.http.UntrustedCertificate;
import org.edgefl.training.Interrupts;

/** Repeats a request until there is an answer, with growing pauses. A stop ends it, or having been idle too long. */
final class Patience {
    private final Connection connection;
    private final StopSignal stop;
    private final IdleTime idle;
    private final Status status;
    private final Backoff backoff = new Backoff();
    private boolean member;

    Patience(Connection connection, StopSignal stop, IdleTime idle, Status status) {
        this.connection = connection;
        this.stop = stop;
        this.idle = idle;
        this.status = status;
    }

    /** From now on a coordinator that is not the known one is waited for: nothing is sent to it. */
    void becomeMember() {
        member = true;
    }

    /** Return the answer to a request, however long that takes; the last failure, if the agent was idle too long. */
    <T> T until(Function<CoordinatorClient, T> request) {
        while (true) {
            if (stop.isStopped()) {
                throw new Interrupts.Stopped();
            }
            try {
                T answer = request.apply(connection.client());
                backoff.succeeded();
                return answer;
            } catch (Unreachable error) {
                waitAfter(error, error.retryAfterSeconds());
            } catch (UntrustedCertificate error) {
                // A member may be behind a captive portal for a while. A joiner must be told.
                if (!member) {
                    throw error;
                }
                waitAfter(error, 0);
            }
        }
    }

    /** Pause as after a failure. */
    void pause() {
        stop.sleep(idle.atMost(backoff.failed(0)));
    }

    private void waitAfter(EdgeFLError error, double retryAfter) {
        if (stop.isStopped()) {
            throw new Interrupts.Stopped();
        }
        if (idle.isOver()) {
            throw error;
        }
        double wait = idle.atMost(backoff.failed(retryAfter));
        status.note(error.getMessage() + String.format("; again in %.0f s", wait));
        stop.sleep(wait);
    }
}
