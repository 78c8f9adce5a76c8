package org.edgefl.agent;

import org.edgefl.agent.Progress.Phase;
import org.edgefl.wire.OneLine;

/** Tells the owner what the agent does: lines to the log, phases and steps to the listener. */
final class Status {
    private final Progress progress;
    private final Log log;
    private Phase phase = Phase.IDLE;
    private int round;
    private String last = "";
    private String told;

    Status(Progress progress, Log log) {
        this.progress = progress;
        this.log = log;
    }

    /** Say a line, which stays the last thing worth telling until there is another. */
    void say(String line) {
        log.say(line);
        last = OneLine.of(line);
    }

    /** Keep the last thing worth telling, which somebody else says. */
    void last(String line) {
        last = OneLine.of(String.valueOf(line));
    }

    /** Say a line that belongs to the present phase. */
    void note(String line) {
        say(line);
        enter(phase, round);
    }

    /** Begin a phase; one that goes on unchanged is not told again. */
    void enter(Phase next, int roundFromOne) {
        phase = next;
        round = roundFromOne;
        String now = next + " " + roundFromOne + " " + last;
        if (!now.equals(told)) {
            told = now;
            tell(() -> progress.enter(next, roundFromOne, last));
        }
    }

    /** Begin to wait for a reason, which is said once as long as it stays the same. */
    void waitFor(String reason, int roundFromOne) {
        if (phase != Phase.WAITING || !reason.equals(last)) {
            log.say("waiting: " + reason);
        }
        last = reason;
        enter(Phase.WAITING, roundFromOne);
    }

    /** End because nothing can be done now: the reason of a wait is worth more than a line that says just that. */
    void endForNow(String line) {
        if (phase != Phase.WAITING) {
            say(line);
        }
    }

    /** A training step has ended. */
    void step(int step, int steps, double secondsLeft) {
        tell(() -> progress.step(step, steps, secondsLeft));
    }

    /** Tell the listener. A screen that fails must not cost a training. */
    private void tell(Runnable call) {
        try {
            call.run();
        } catch (RuntimeException failed) {
            log.say("a listener failed: " + failed);
        }
    }
}
