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
 * @param data reads the device's samples, once the federation has said what a sample is
 * @param profiler measures the device when it joins
 * @param profile a profile that was measured before, or null
 * @param waitSeconds how long to wait in a poll
 * @param mostTasks tasks after which the agent ends; 0 means no limit
 */
public record AgentSettings(
        String name, Capabilities capabilities, Engine engine, Function<SampleSpec, LocalData> data, Profiler profiler,
        JsonObject profile, Meters meters, OwnerLimits limits, double waitSeconds, int mostTasks,
        double checkpointSeconds) {}
