package org.edgefl.agent;

import java.util.List;
import java.util.function.Predicate;
import org.edgefl.values.Refusal;

/**
 * What the owner of a device allows, whatever the coordinator says.
 *
 * @param conditions what must hold while it works
 * @param secondsATask the longest time of a task, from the plan's arrival to its result
 * @param bytesADay most traffic of a day, both ways; 0 means no limit
 * @param memoryBytes most memory of a task; 0 means no limit
 * @param cacheBytes most room for downloads
 */
public record OwnerLimits(
        List<Condition> conditions, double secondsATask, long bytesADay, long memoryBytes, long cacheBytes) {

    /** Return why this device must not work now, or null. */
    public Refusal violated() {
        return first(refusal -> true);
    }

    /** Return why nothing large may be sent now, or null: a finished result waits for an unmetered network alone. */
    Refusal metered() {
        return first(refusal -> refusal.reason() == Refusal.Reason.METERED);
    }

    private Refusal first(Predicate<Refusal> wanted) {
        for (Condition condition : conditions) {
            Refusal refusal = condition.violated();
            if (refusal != null && wanted.test(refusal)) {
                return refusal;
            }
        }
        return null;
    }
}
