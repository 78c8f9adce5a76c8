package org.edgefl.agent;

import java.time.LocalTime;
import java.util.function.Supplier;
import org.edgefl.values.Refusal;

/**
 * Works only during some hours of the day, such as 22 to 6; equal hours mean the whole day.
 *
 * @param clock the time of day
 */
public record HoursCondition(int from, int to, Supplier<LocalTime> clock) implements Condition {
    @Override
    public Refusal violated() {
        int hour = clock.get().getHour();
        boolean inside = from < to ? hour >= from && hour < to : hour >= from || hour < to;
        return inside ? null
            : new Refusal(Refusal.Reason.HOURS, "the owner allows work from " + from + " to " + to + " o'clock");
    }
}
