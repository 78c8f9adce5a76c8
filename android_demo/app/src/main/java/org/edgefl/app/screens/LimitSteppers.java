package org.edgefl.app.screens;

import android.content.Context;
import android.view.View;
import android.widget.TextView;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.edgefl.app.R;
import org.edgefl.app.phone.OwnerSettings;
import org.edgefl.app.phone.Phone;

/** The owner's limits as steppers: every tap is kept at once. */
final class LimitSteppers {
    private static final int[] HOURS = IntStream.range(0, 24).toArray();
    /** No limit is more than any: whoever taps for less must not end with it. The settings say 0. */
    private static final int NO_LIMIT = Integer.MAX_VALUE;
    private static final int[] MEGABYTES = {10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, NO_LIMIT};
    private static final int[] DEGREES = IntStream.rangeClosed(30, 45).toArray();
    private static final int[] MINUTES = {5, 10, 20, 30, 60, 120, 240, 360, 600, 1440, 2880, 4320};

    private final View view;
    private final Phone phone;

    LimitSteppers(View view, Phone phone) {
        this.view = view;
        this.phone = phone;
        Context context = view.getContext();
        stepper(R.id.from_hour).begin(R.string.limit_from, HOURS, true, hour -> Units.hour(context, hour),
            hour -> change(was -> new OwnerSettings(was.atNight(), hour, was.toHour(), was.megabytesADay(),
                was.mostDegrees(), was.minutesATask())));
        stepper(R.id.to_hour).begin(R.string.limit_to, HOURS, true, hour -> Units.hour(context, hour),
            hour -> change(was -> new OwnerSettings(was.atNight(), was.fromHour(), hour, was.megabytesADay(),
                was.mostDegrees(), was.minutesATask())));
        IntFunction<String> traffic = most ->
            most == NO_LIMIT ? context.getString(R.string.no_limit) : Units.megabytes(context, most);
        stepper(R.id.megabytes).begin(R.string.limit_megabytes, MEGABYTES, false, traffic,
            most -> change(was -> new OwnerSettings(was.atNight(), was.fromHour(), was.toHour(),
                most == NO_LIMIT ? 0 : most, was.mostDegrees(), was.minutesATask())));
        stepper(R.id.degrees).begin(R.string.limit_degrees, DEGREES, false, most -> Units.celsius(context, most),
            most -> change(was -> new OwnerSettings(was.atNight(), was.fromHour(), was.toHour(), was.megabytesADay(),
                most, was.minutesATask())));
        stepper(R.id.minutes).begin(R.string.limit_minutes, MINUTES, false, most -> Units.minutes(context, most),
            most -> change(was -> new OwnerSettings(was.atNight(), was.fromHour(), was.toHour(), was.megabytesADay(),
                was.mostDegrees(), most)));
    }

    /** One limit of the settings is replaced. */
    private interface Change {
        OwnerSettings of(OwnerSettings was);
    }

    private void change(Change change) {
        OwnerSettings made = change.of(phone.settings());
        phone.put(made);
        show(made);
    }

    private Stepper stepper(int id) {
        return view.findViewById(id);
    }

    void show(OwnerSettings settings) {
        stepper(R.id.from_hour).set(settings.fromHour());
        stepper(R.id.to_hour).set(settings.toHour());
        stepper(R.id.megabytes).set(settings.megabytesADay() == 0 ? NO_LIMIT : settings.megabytesADay());
        stepper(R.id.degrees).set(settings.mostDegrees());
        stepper(R.id.minutes).set(settings.minutesATask());
        boolean always = settings.fromHour() == settings.toHour();
        ((TextView) view.findViewById(R.id.hours_how)).setText(always ? R.string.hours_all : R.string.hours_some);
    }
}
