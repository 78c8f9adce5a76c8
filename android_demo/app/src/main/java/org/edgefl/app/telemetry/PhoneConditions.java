package org.edgefl.app.telemetry;

import android.content.Context;
import android.net.ConnectivityManager;
import android.os.PowerManager;
import java.util.List;
import java.util.Locale;
import java.util.function.IntSupplier;
import org.edgefl.agent.Condition;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;

/**
 * What must hold while the phone works (docs/phones.md).
 *
 * <p>Heat always counts. Power, network and battery saver count at night only: an owner who taps <em>Train now</em> has
 * decided about those.
 */
public final class PhoneConditions {
    private final Context context;
    private final Battery battery;
    private final Heat heat;

    /** Conditions of the phone that the app runs on. */
    public PhoneConditions(Context context) {
        this.context = context;
        this.battery = new Battery(context);
        this.heat = new Heat(context);
    }

    /** The conditions of work that the owner asked for; {@code mostDegrees} is the battery's limit as it is now. */
    public List<Condition> now(IntSupplier mostDegrees) {
        return List.of(this::coolEnough, () -> below(mostDegrees.getAsInt()));
    }

    /** The conditions of work at night, without its hours. */
    public List<Condition> night(IntSupplier mostDegrees) {
        return List.of(this::coolEnough, () -> below(mostDegrees.getAsInt()), this::plugged, this::notSaving,
            this::unmetered);
    }

    private Refusal coolEnough() {
        boolean hot = heat.status() >= PowerManager.THERMAL_STATUS_SEVERE;
        return hot ? new Refusal(Reason.THERMAL, "the phone is too warm, its system says") : null;
    }

    private Refusal below(int mostDegrees) {
        double found = battery.celsius();
        if (Double.isNaN(found) || found <= mostDegrees) {
            return null;
        }
        return new Refusal(Reason.TEMPERATURE, String.format(Locale.ROOT,
            "the battery has %.0f °C, and the owner allows %d °C", found, mostDegrees));
    }

    private Refusal plugged() {
        return Boolean.FALSE.equals(battery.isPlugged()) ? new Refusal(Reason.POWER, "the phone is not charging") : null;
    }

    private Refusal notSaving() {
        boolean saving = context.getSystemService(PowerManager.class).isPowerSaveMode();
        return saving ? new Refusal(Reason.BATTERY_SAVER, "the phone saves battery") : null;
    }

    private Refusal unmetered() {
        boolean metered = context.getSystemService(ConnectivityManager.class).isActiveNetworkMetered();
        return metered ? new Refusal(Reason.METERED, "the network is metered") : null;
    }
}
