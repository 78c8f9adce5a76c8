package org.edgefl.agent;

import java.util.function.Function;
import org.edgefl.EdgeFLError;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.Unreachable;
import org.edgefl.http.UntrustedCertificate;
import org.edgefl.training.Interrupts;

/** Repeats a request until there is an answer, with growing pauses. A stop ends it. */
final class Patience {
    private final Connection connection;
    private final StopSignal stop;
    private final Log log;
    private final Backoff backoff = new Backoff();
    private boolean member;

    Patience(Connection connection, StopSignal stop, Log log) {
        this.connection = connection;
        this.stop = stop;
        this.log = log;
    }

    /** From now on a coordinator that is not the known one is waited for: nothing is sent to it. */
    void becomeMember() {
        member = true;
    }

    /** Return the answer to a request, however long that takes. */
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
        stop.sleep(backoff.failed(0));
    }

    private void waitAfter(EdgeFLError error, double retryAfter) {
        if (stop.isStopped()) {
            throw new Interrupts.Stopped();
        }
        double wait = backoff.failed(retryAfter);
        log.say(error.getMessage() + String.format("; again in %.0f s", wait));
        stop.sleep(wait);
    }
}
