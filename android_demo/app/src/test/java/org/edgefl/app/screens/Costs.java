package org.edgefl.app.screens;

import android.content.Context;
import java.util.List;
import org.edgefl.json.JsonObject;
import org.robolectric.RuntimeEnvironment;

/** What the list of costs must say, from a row of the coordinator's telemetry. */
public final class Costs {
    private Costs() {}

    /** Time, peak memory, bytes sent and received. */
    public static List<String> words(JsonObject row) {
        Context context = RuntimeEnvironment.getApplication();
        return List.of(Units.seconds(context, row.number("round_seconds")),
            Units.bytes(context, row.whole("peak_bytes")), Units.bytes(context, row.whole("up_bytes")), Units.bytes(context, row.whole("down_bytes")));
    }
}
