package org.edgefl.agent;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.LocalDate;
import java.util.function.Supplier;
import org.edgefl.http.Meter;
import org.edgefl.values.Refusal;
import org.edgefl.values.TaskRefused;

/** Counts bytes for a task's telemetry and for the owner's daily limit, which ends a transfer where it is reached. */
final class TrafficMeter implements Meter {
    private static final long SAVE_EVERY = 1 << 20;

    private final AgentHome home;
    private final long mostADay;
    private final Supplier<LocalDate> today;
    private String day;
    private long ofDay;
    private long saved;
    private long down;
    private long up;

    TrafficMeter(AgentHome home, long mostADay, Supplier<LocalDate> today) {
        this.home = home;
        this.mostADay = mostADay;
        this.today = today;
        this.day = today.get().toString();
        this.ofDay = home.trafficOf(day);
        this.saved = ofDay;
    }

    @Override
    public synchronized void received(long bytes) {
        down += bytes;
        count(bytes);
    }

    @Override
    public synchronized void sent(long bytes) {
        up += bytes;
        count(bytes);
    }

    private void count(long bytes) {
        String now = today.get().toString();
        if (!now.equals(day)) {
            day = now;
            ofDay = 0;
            saved = 0;
        }
        ofDay += bytes;
        if (ofDay - saved >= SAVE_EVERY) {
            save();
        }
        if (mostADay > 0 && ofDay > mostADay) {
            save();
            throw new TaskRefused(Refusal.Reason.TRAFFIC, "the day's " + mostADay / 1_000_000 + " MB are used up");
        }
    }

    /** Return why there may be no more traffic today, or null. */
    synchronized Refusal violated() {
        boolean over = mostADay > 0 && ofDay >= mostADay && today.get().toString().equals(day);
        return over ? new Refusal(Refusal.Reason.TRAFFIC, "the day's traffic is used up") : null;
    }

    /** Write the count of the day to the disk. */
    synchronized void save() {
        try {
            home.putTraffic(day, ofDay);
            saved = ofDay;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    synchronized void beginTask() {
        down = 0;
        up = 0;
    }

    synchronized long down() {
        return down;
    }

    synchronized long up() {
        return up;
    }
}
