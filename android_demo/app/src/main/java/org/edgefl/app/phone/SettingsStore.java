package org.edgefl.app.phone;

import android.content.Context;
import android.content.SharedPreferences;

/** Keeps the owner's settings. They are the phone's, not a federation's: leaving one does not change them. */
final class SettingsStore {
    private final SharedPreferences file;
    private volatile OwnerSettings current;

    SettingsStore(Context context) {
        file = context.getSharedPreferences("owner", Context.MODE_PRIVATE);
        OwnerSettings first = OwnerSettings.DEFAULT;
        current = new OwnerSettings(file.getBoolean("at_night", first.atNight()),
            file.getInt("from_hour", first.fromHour()), file.getInt("to_hour", first.toHour()),
            file.getInt("megabytes_a_day", first.megabytesADay()), file.getInt("most_degrees", first.mostDegrees()),
            file.getInt("minutes_a_task", first.minutesATask()));
    }

    OwnerSettings get() {
        return current;
    }

    void put(OwnerSettings settings) {
        current = settings;
        file.edit()
            .putBoolean("at_night", settings.atNight())
            .putInt("from_hour", settings.fromHour())
            .putInt("to_hour", settings.toHour())
            .putInt("megabytes_a_day", settings.megabytesADay())
            .putInt("most_degrees", settings.mostDegrees())
            .putInt("minutes_a_task", settings.minutesATask())
            .apply();
    }
}
