package org.edgefl.agent;

import java.io.IOException;
import java.time.LocalDate;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.edgefl.http.Meter;
import org.edgefl.telemetry.TelemetrySections;
import org.edgefl.values.Refusal;
import org.edgefl.values.TaskRefused;

/**
 * Counts bytes for a task's telemetry and for the owner's daily limit, which ends a transfer where it is reached.
 *
 * <p>Downloads end a little before the limit: a device must be able to say why it refuses a task.
 */
final class TrafficMeter implements Meter {
    private static final long SAVE_EVERY = 1 << 20;
    private static final long KEPT_BACK = 1 << 20;
    private static final int KEPT_SHARE = 8;

    private final AgentHome home;
    private final long mostADay;
    private final Supplier<LocalDate> today;
    private String day;
    private long ofDay;
    private long saved;
    private long down;
    private long up;
    private boolean downloading;

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
        if (mostADay > 0 && ofDay > mostADay - (downloading ? keptBack() : 0)) {
            save();
            throw new TaskRefused(Refusal.Reason.TRAFFIC, "the day's " + mostADay / 1_000_000 + " MB are used up");
        }
    }

    private long keptBack() {
        return Math.min(KEPT_BACK, mostADay / KEPT_SHARE);
    }

    /** Say whether what follows is a download. */
    synchronized void downloading(boolean now) {
        downloading = now;
    }

    /** Return why there may be no more tasks today, or null. */
    synchronized Refusal violated() {
        boolean over = mostADay > 0 && ofDay >= mostADay - keptBack() && today.get().toString().equals(day);
        return over ? new Refusal(Refusal.Reason.TRAFFIC, "the day's traffic is used up") : null;
    }

    /** Write the count of the day to the disk; if that fails, it is tried again with the next bytes. */
    synchronized void save() {
        try {
            home.putTraffic(day, ofDay);
            saved = ofDay;
        } catch (IOException full) {
            // The count in memory still holds, and a full disk must not end the agent.
            return;
        }
    }

    synchronized void beginTask() {
        down = 0;
        up = 0;
    }

    /** Bytes received since the task began. */
    synchronized long down() {
        return down;
    }

    /** Bytes sent since the task began. */
    synchronized long up() {
        return up;
    }

    /**
     * Return the section {@code transfer} of the telemetry.
     *
     * <p>Bodies are counted as they pass. Headers are reckoned from what was set and received, because the HTTP stack
     * does not show its bytes: so the sum is an estimate, if a close one.
     */
    synchronized Map<String, Object> section() {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("down_bytes", down);
        fields.put("up_bytes", up);
        fields.put("provenance", TelemetrySections.ESTIMATED);
        return fields;
    }
}
