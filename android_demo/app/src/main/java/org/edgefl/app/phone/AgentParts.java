package org.edgefl.app.phone;

import android.content.Context;
import android.content.pm.PackageManager;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.edgefl.agent.Agent;
import org.edgefl.agent.AgentSettings;
import org.edgefl.agent.Condition;
import org.edgefl.agent.HoursCondition;
import org.edgefl.agent.OwnerLimits;
import org.edgefl.app.samples.SampleStore;
import org.edgefl.app.telemetry.PhoneClock;
import org.edgefl.app.telemetry.PhoneConditions;
import org.edgefl.app.telemetry.PhoneFacts;
import org.edgefl.data.LocalData;
import org.edgefl.engine.Engine;
import org.edgefl.http.TrustedCertificates;
import org.edgefl.http.UrlTransport;
import org.edgefl.profile.Profiler;
import org.edgefl.telemetry.Meters;
import org.edgefl.values.Capabilities;
import org.edgefl.values.SampleSpec;

/** What an agent on this phone is built from. */
final class AgentParts {
    private static final String CLIENT = "edgefl-android";
    private static final double MEASURE_SECONDS = 20;
    private static final double WAIT_SECONDS = 20;
    private static final long MEGABYTE = 1_000_000;
    private static final long CACHE_BYTES = 512 * MEGABYTE;

    private final Context context;
    private final SampleStore samples;
    private final Supplier<OwnerSettings> owner;
    private final double checkpointSeconds;

    AgentParts(Context context, SampleStore samples, Supplier<OwnerSettings> owner, double checkpointSeconds) {
        this.context = context;
        this.samples = samples;
        this.owner = owner;
        this.checkpointSeconds = checkpointSeconds;
    }

    /** Reaches coordinators: by the pins of a code, else by the system's authorities. */
    Agent.Connector connector() {
        String software = CLIENT + "/" + version();
        return (url, pins, meter) -> new UrlTransport(url, TrustedCertificates.pinned(pins), software, meter);
    }

    private String version() {
        try {
            String name = context.getPackageManager().getPackageInfo(context.getPackageName(), 0).versionName;
            return name == null ? "0" : name;
        } catch (PackageManager.NameNotFoundException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    AgentSettings settings(Occasion occasion, Engine engine, Meters meters, OwnerLimits limits) {
        PhoneFacts facts = new PhoneFacts(context);
        String[] software = engine.description().split(" ");
        Capabilities capabilities =
            new Capabilities(CLIENT, version(), facts.system(), software[0], software[1]);
        return new AgentSettings(null, capabilities, engine, this::data, new Profiler(engine, facts, MEASURE_SECONDS),
            null, meters, limits, WAIT_SECONDS, 0, occasion.idleSeconds, checkpointSeconds,
            new PhoneClock(context));
    }

    private LocalData data(SampleSpec spec) {
        int count = 0;
        for (int ofClass : samples.countByClass(spec)) {
            count += ofClass;
        }
        return count == 0 ? null : samples.data(spec);
    }

    /** The owner's limits. Degrees and hours follow a change at once, megabytes and minutes with the next run. */
    OwnerLimits limits(Occasion occasion) {
        PhoneConditions phone = new PhoneConditions(context);
        List<Condition> conditions = new ArrayList<>();
        if (occasion == Occasion.NIGHT) {
            conditions.add(() -> hours(owner.get()).violated());
            conditions.addAll(phone.night(() -> owner.get().mostDegrees()));
        } else if (occasion == Occasion.NOW) {
            conditions.addAll(phone.now(() -> owner.get().mostDegrees()));
        }
        OwnerSettings settings = owner.get();
        PhoneFacts facts = new PhoneFacts(context);
        return new OwnerLimits(conditions, 60.0 * settings.minutesATask(), MEGABYTE * settings.megabytesADay(),
            facts.memoryFreeBytes() + facts.processBytes(), CACHE_BYTES);
    }

    /** The hours of the night. */
    static Condition hours(OwnerSettings settings) {
        return new HoursCondition(settings.fromHour(), settings.toHour(), LocalTime::now);
    }
}
