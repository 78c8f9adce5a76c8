package org.edgefl.app.telemetry;

import android.content.Context;
import android.os.Build;
import android.os.PowerManager;
import java.util.Map;
import org.edgefl.app.RequiresApi;
import org.edgefl.telemetry.TelemetrySections;

/** The system's own judgement of the phone's heat: Android 10 (API 29) and later. */
public final class Heat {
    private static final String[] NAMES =
        {"none", "light", "moderate", "severe", "critical", "emergency", "shutdown"};

    private final Context context;
    private String began;

    /** The heat of the phone that the app runs on. */
    public Heat(Context context) {
        this.context = context;
    }

    /** Return the thermal status, from 0 to 6, or -1 if the system does not say. */
    public int status() {
        if (Build.VERSION.SDK_INT < Build.VERSION_CODES.Q) {
            return -1;
        }
        int found = current();
        return found >= 0 && found < NAMES.length ? found : -1;
    }

    @RequiresApi(29)
    private int current() {
        return context.getSystemService(PowerManager.class).getCurrentThermalStatus();
    }

    private String name() {
        int found = status();
        return found < 0 ? null : NAMES[found];
    }

    void begin() {
        began = name();
    }

    /** Return the section {@code thermal}. Degrees are for processors; the battery's would be taken for theirs. */
    Map<String, Object> thermal() {
        return TelemetrySections.thermal(null, null, null, began, name());
    }
}
