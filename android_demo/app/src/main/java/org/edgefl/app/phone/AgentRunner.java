package org.edgefl.app.phone;

import android.content.Context;
import android.util.Log;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import org.edgefl.EdgeFLError;
import org.edgefl.agent.Agent;
import org.edgefl.agent.AgentHome;
import org.edgefl.agent.OwnerLimits;
import org.edgefl.agent.Progress;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.agent.StopSignal;
import org.edgefl.agent.TokenVault;
import org.edgefl.app.R;
import org.edgefl.app.telemetry.PhoneMeters;
import org.edgefl.engine.Engine;
import org.edgefl.http.Pairing;
import org.edgefl.values.Refusal;

/**
 * Runs agents in the phone's home folder: one at a time, each on a thread of its own.
 *
 * <p>An agent may be killed with the process at any instant; the next one goes on with what is in the folder.
 */
final class AgentRunner {
    private static final double LOOK_AGAIN_SECONDS = 10;
    private static final double PATIENCE_SECONDS = 1800;

    private final Context context;
    private final Path folder;
    private final TokenVault vault;
    private final TrainingEngine engine;
    private final AgentParts parts;
    private final Progress progress;
    private final Runnable lastThing;
    private Run current;

    /**
     * A runner in a folder.
     *
     * @param lastThing called at the end of every run, while it still counts as one
     */
    AgentRunner(Context context, Path folder, TokenVault vault, TrainingEngine engine, AgentParts parts,
            Progress progress, Runnable lastThing) {
        this.context = context;
        this.folder = folder;
        this.vault = vault;
        this.engine = engine;
        this.parts = parts;
        this.progress = progress;
        this.lastThing = lastThing;
    }

    /**
     * Begin to run, unless an agent runs already. The owner's wish goes before the night's work, which ends first.
     *
     * @param pairing what to join by, or null
     * @param ended called on the agent's thread when it has ended
     */
    synchronized boolean start(Occasion occasion, Pairing pairing, Runnable ended) {
        Run before = current;
        if (before != null && (occasion == Occasion.NIGHT || before.occasion != Occasion.NIGHT)) {
            return false;
        }
        if (before != null) {
            before.stopNow();
        }
        current = new Run(occasion, pairing, before, ended);
        current.start();
        return true;
    }

    /** Whether an agent runs, for one of some reasons. */
    synchronized boolean isRunning(Occasion... occasions) {
        return current != null && Arrays.asList(occasions).contains(current.occasion);
    }

    /** Ask the agent to end soon, if it runs for one of some reasons. */
    synchronized void stop(Occasion... occasions) {
        for (Occasion occasion : occasions) {
            if (current != null && current.occasion == occasion) {
                current.stopNow();
            }
        }
    }

    /** Wait until no agent runs; return whether that came within some seconds. */
    boolean awaitEnd(double seconds) {
        Run run;
        synchronized (this) {
            run = current;
        }
        try {
            if (run != null) {
                run.join((long) (1000 * seconds));
            }
        } catch (InterruptedException now) {
            Thread.currentThread().interrupt();
        }
        return run == null || !run.isAlive();
    }

    private synchronized void ended(Run run) {
        if (current == run) {
            current = null;
        }
    }

    /** One run, and the thread that it has. */
    private final class Run extends Thread {
        private final Occasion occasion;
        private final Pairing pairing;
        private final Run before;
        private final Runnable ended;
        private final StopSignal stopped = new StopSignal();
        private Agent agent;
        private String lastWords = "";

        Run(Occasion occasion, Pairing pairing, Run before, Runnable ended) {
            super("edgefl-agent");
            this.occasion = occasion;
            this.pairing = pairing;
            this.before = before;
            this.ended = ended;
        }

        synchronized void stopNow() {
            stopped.stop();
            if (agent != null) {
                agent.stop();
            }
        }

        private synchronized boolean begin(Agent next) {
            agent = next;
            return !stopped.isStopped();
        }

        @Override
        public void run() {
            try {
                if (before != null) {
                    before.join();
                }
                live();
            } catch (EdgeFLError error) {
                lastWords = context.getString(R.string.message_problem_and_fix, error.getMessage(), error.fix());
            } catch (IOException | RuntimeException | LinkageError | OutOfMemoryError error) {
                lastWords = context.getString(R.string.message_problem_unexpected, String.valueOf(error.getMessage()));
            } catch (InterruptedException nobodyDoes) {
                Thread.currentThread().interrupt();
            } finally {
                lastThing.run();
                progress.enter(Phase.IDLE, 0, lastWords);
                AgentRunner.this.ended(this);
                ended.run();
            }
        }

        private void live() throws IOException {
            Engine opened = engine.open();
            OwnerLimits limits = parts.limits(occasion);
            try (AgentHome home = new AgentHome(folder, vault); PhoneMeters meters = new PhoneMeters(context)) {
                do {
                    Agent next = new Agent(home, parts.settings(occasion, opened, meters, limits), pairing,
                        parts.connector(), untilTheEnd(), line -> Log.i("EdgeFL", line));
                    if (!begin(next)) {
                        return;
                    }
                    if (occasion == Occasion.JOIN) {
                        // That it has joined is shown by the federation itself.
                        lastWords = next.join() == null ? lastWords : "";
                        return;
                    }
                    next.run();
                } while (occasion == Occasion.NOW && waited(limits));
            }
        }

        /**
         * What an agent tells, but for its end. Nobody may see that a run is over before what came of it is known: a
         * screen would take a phone that has just joined for one that has failed to.
         */
        private Progress untilTheEnd() {
            return new Progress() {
                @Override
                public void enter(Phase phase, int round, String message) {
                    if (phase == Phase.IDLE) {
                        lastWords = message;
                    } else {
                        progress.enter(phase, round, message);
                    }
                }

                @Override
                public void step(int step, int steps, double secondsLeft) {
                    progress.step(step, steps, secondsLeft);
                }
            };
        }

        /** A phone that is too warm cools down: wait for that. Return whether to go on; false if nothing was in the way. */
        private boolean waited(OwnerLimits limits) {
            Refusal reason = limits.violated();
            boolean inTheWay = reason != null;
            for (double waited = 0; reason != null && waited < PATIENCE_SECONDS; waited += LOOK_AGAIN_SECONDS) {
                progress.enter(Phase.WAITING, 0, reason.message());
                if (stopped.sleep(LOOK_AGAIN_SECONDS)) {
                    break;
                }
                reason = limits.violated();
            }
            if (inTheWay && reason != null) {
                lastWords = context.getString(R.string.message_stopped_because, reason.message());
            }
            return inTheWay && reason == null && !stopped.isStopped();
        }
    }
}
