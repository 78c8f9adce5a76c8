package org.edgefl.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.List;
import org.edgefl.EdgeFLError;
import org.edgefl.training.Interrupts;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;
import org.edgefl.values.TaskRefused;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the owner allows holds whatever the coordinator says. */
class OwnerLimitsTest {
    private static final OwnerLimits NONE = new OwnerLimits(List.of(), 3600, 0, 0, 1 << 30);

    @TempDir
    private Path folder;

    @Test
    void hoursMayGoOverMidnight() {
        assertNull(new HoursCondition(22, 6, () -> LocalTime.of(23, 59)).violated());
        assertNull(new HoursCondition(22, 6, () -> LocalTime.of(5, 59)).violated());
        assertEquals(Reason.HOURS, new HoursCondition(22, 6, () -> LocalTime.of(6, 0)).violated().reason());
        assertNotNull(new HoursCondition(9, 17, () -> LocalTime.of(20, 0)).violated());
        assertNull(new HoursCondition(7, 7, () -> LocalTime.of(20, 0)).violated());
    }

    @Test
    void trafficEndsWhereTheDaysLimitDoesAndBeginsAgainTomorrow() throws IOException {
        LocalDate[] today = {LocalDate.of(2026, 1, 1)};
        try (AgentHome home = new AgentHome(folder)) {
            TrafficMeter meter = new TrafficMeter(home, 1000, () -> today[0]);
            meter.received(600);
            meter.downloading(true);
            assertThrows(TaskRefused.class, () -> meter.received(290));
            meter.downloading(false);
            meter.sent(10);
            TaskRefused refused = assertThrows(TaskRefused.class, () -> meter.received(200));
            assertEquals(Reason.TRAFFIC, refused.refusal().reason());
            assertNotNull(new TrafficMeter(home, 1000, () -> today[0]).violated());
            today[0] = today[0].plusDays(1);
            assertNull(meter.violated());
            meter.received(900);
        }
    }

    @Test
    void aTaskEndsAtItsDeadlinesAndWhenItIsStopped() {
        StopSignal stop = new StopSignal();
        new Deadline(stop, NONE, 600, 0, DeviceClock.JVM).begin();
        assertEquals(Reason.DEADLINE, reason(new Deadline(stop, NONE, 600, 601, DeviceClock.JVM)));
        assertEquals(Reason.DEADLINE, reason(new Deadline(stop, NONE, 100_000, 4000, DeviceClock.JVM)));
        Refusal hot = new Refusal(Reason.THERMAL, "severe");
        OwnerLimits cool = new OwnerLimits(List.of(() -> hot), 3600, 0, 0, 1);
        Deadline warm = new Deadline(stop, cool, 600, 0, DeviceClock.JVM);
        assertThrows(Interrupts.Stopped.class, () -> warm.check(0));
        assertEquals(hot, warm.objection());
        assertThrows(TaskRefused.class, () -> new Deadline(stop, NONE, 600, 300, DeviceClock.JVM).check(900));
        new Deadline(stop, NONE, 600, 599, DeviceClock.JVM).check(10);
        stop.stop();
        assertThrows(Interrupts.Stopped.class, () -> new Deadline(stop, NONE, 600, 0, DeviceClock.JVM).check(0));
    }

    @Test
    void onlyAConditionThatMayHoldAgainIsWaitedForAndOnlyWithTime() {
        OwnerLimits patient = new OwnerLimits(List.of(), 1e6, 0, 0, 1);
        Deadline day = new Deadline(new StopSignal(), patient, 86_400, 0, DeviceClock.JVM);
        for (Reason reason : Reason.values()) {
            boolean passing = switch (reason) {
                case POWER, TEMPERATURE, THERMAL, BATTERY_SAVER, METERED, HOURS -> true;
                default -> false;
            };
            assertEquals(passing, day.canWaitFor(new Refusal(reason, "no"), 60), reason.text());
        }
        Refusal power = new Refusal(Reason.POWER, "not charging");
        assertFalse(day.canWaitFor(power, 50_000));
        assertFalse(new Deadline(new StopSignal(), NONE, 86_400, 0, DeviceClock.JVM).canWaitFor(power, 60));
        assertFalse(new Deadline(new StopSignal(), NONE, 7000, 0, DeviceClock.JVM).canWaitFor(power, 60));
    }

    private static Reason reason(Deadline deadline) {
        return assertThrows(TaskRefused.class, deadline::begin).refusal().reason();
    }

    @Test
    void pausesGrowAndNoAnswerCanSilenceADevice() {
        Backoff backoff = new Backoff();
        assertTrue(backoff.failed(0) <= 1);
        for (int i = 0; i < 20; i++) {
            assertTrue(backoff.failed(0) <= 300);
        }
        assertTrue(backoff.failed(0) >= 150);
        assertTrue(backoff.failed(80_000) <= 3600);
        backoff.succeeded();
        double asked = backoff.failed(7);
        assertTrue(asked >= 7 && asked <= 7.7);
    }

    @Test
    void aHomeHasOneAgentAndSurvivesDamage() throws IOException {
        try (AgentHome home = new AgentHome(folder)) {
            assertThrows(EdgeFLError.class, () -> new AgentHome(folder));
            Files.writeString(folder.resolve("device.json"), "{\"url\":");
            assertNull(Membership.load(home));
            Files.writeString(folder.resolve("task/plan.json"), "{}");
            assertNull(PendingTask.load(home));
        }
        new AgentHome(folder).close();
    }

    @Test
    void aRefusalIsOneLineThatTheCoordinatorAccepts() {
        String message = (String) new Refusal(Reason.BROKEN, " a\nb\u0000" + "x".repeat(500)).toJson().get("message");
        assertEquals(200, message.length() + 1);
        assertTrue(message.startsWith("a b x"));
        assertEquals("broken", new Refusal(Reason.BROKEN, "\n").toJson().get("message"));
    }
}
