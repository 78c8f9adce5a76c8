package org.edgefl.agent;

import java.time.LocalDate;
import org.edgefl.http.Pairing;

/** The parts of one agent, which know each other. Everything but the stop is used by the agent's thread alone. */
final class Parts {
    final AgentHome home;
    final AgentSettings settings;
    final Status status;
    final StopSignal stop = new StopSignal();
    final IdleTime idle;
    final TrafficMeter traffic;
    final Connection connection;
    final Patience patience;
    final ArtifactCache cache;
    final OwnSamples samples;
    final ToldSamples told;
    final Enrolment enrolment;
    final Outbox outbox;

    Parts(AgentHome home, AgentSettings settings, Pairing pairing, Agent.Connector connector, Progress progress,
            Log log) {
        this.home = home;
        this.settings = settings;
        this.status = new Status(progress, log);
        this.idle = new IdleTime(settings.idleSeconds());
        this.traffic = new TrafficMeter(home, settings.limits().bytesADay(), LocalDate::now);
        this.connection = new Connection(connector, traffic);
        this.patience = new Patience(connection, stop, idle, status);
        this.cache = new ArtifactCache(home, settings.limits().cacheBytes());
        this.samples = new OwnSamples(settings.data());
        this.told = new ToldSamples(patience);
        this.enrolment = new Enrolment(this, pairing);
        this.outbox = new Outbox(home, enrolment, patience, status, traffic);
    }

    /** Tell the owner why nothing can be done now, and pause. */
    void waitFor(String reason, int round, double seconds) {
        status.waitFor(reason, round);
        stop.sleep(idle.atMost(seconds));
    }
}
