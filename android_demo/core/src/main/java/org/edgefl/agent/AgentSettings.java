package org.edgefl.agent;

import java.util.function.Function;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.json.JsonObject;
import org.edgefl.profile.Profiler;
import org.edgefl.telemetry.Meters;
import org.edgefl.values.Capabilities;
import org.edgefl.values.SampleSpec;

/**
 * What an agent is built from: an app or a program fills it.
 *
 * @param name the device's name, or null: the coordinator chooses one
 * @param data reads the device's samples, anew for every task; null means that there are none now. Throws
 *     {@link org.edgefl.data.InvalidData} if they do not fit the federation
 * @param profiler measures the device when it joins
 * @param profile a profile that was measured before, or null
 * @param waitSeconds how long to wait in a poll
 * @param mostTasks tasks after which the agent ends; 0 means no limit
 * @param idleSeconds seconds after which the agent ends if there is nothing to do: no task, no samples, no coordinator,
 *     or a limit of the owner that does not allow work; 0 means never
 * @param checkpointSeconds seconds of training between checkpoints
 * @param clock the clock of deadlines
 */
public record AgentSettings(
        String name, Capabilities capabilities, Engine engine, Function<SampleSpec, LocalData> data, Profiler profiler,
        JsonObject profile, Meters meters, OwnerLimits limits, double waitSeconds, int mostTasks, double idleSeconds,
        double checkpointSeconds, DeviceClock clock) {
    /** Settings with the clock of the JVM. */
    public AgentSettings(
            String name, Capabilities capabilities, Engine engine, Function<SampleSpec, LocalData> data,
            Profiler profiler, JsonObject profile, Meters meters, OwnerLimits limits, double waitSeconds, int mostTasks,
            double idleSeconds, double checkpointSeconds) {
        this(name, capabilities, engine, data, profiler, profile, meters, limits, waitSeconds, mostTasks, idleSeconds,
            checkpointSeconds, DeviceClock.JVM);
    }
}
