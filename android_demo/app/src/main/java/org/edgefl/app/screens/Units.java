package org.edgefl.app.screens;

import android.content.Context;
import android.icu.text.MeasureFormat;
import android.icu.text.NumberFormat;
import android.icu.util.Measure;
import android.icu.util.MeasureUnit;
import android.text.format.DateFormat;
import android.text.format.DateUtils;
import android.text.format.Formatter;
import java.util.Calendar;
import java.util.Date;
import java.util.Locale;
import org.edgefl.app.R;

/** Numbers with their units, as the owner's language writes them. */
final class Units {
    private static final int MINUTE = 60;
    private static final int HOUR = 3600;
    private static final int FEW_SECONDS = 5;

    private Units() {}

    private static Locale locale(Context context) {
        return context.getResources().getConfiguration().getLocales().get(0);
    }

    private static String measure(Context context, double value, MeasureUnit unit, int decimals) {
        NumberFormat number = NumberFormat.getNumberInstance(locale(context));
        number.setMaximumFractionDigits(decimals);
        return MeasureFormat.getInstance(locale(context), MeasureFormat.FormatWidth.SHORT, number)
            .format(new Measure(value, unit));
    }

    /** Decimals that leave about three digits. */
    private static int decimals(double value) {
        return value < 10 ? 2 : value < 100 ? 1 : 0;
    }

    static String seconds(Context context, double seconds) {
        return measure(context, seconds, MeasureUnit.SECOND, decimals(seconds));
    }

    static String milliseconds(Context context, double seconds) {
        return measure(context, 1000 * seconds, MeasureUnit.MILLISECOND, decimals(1000 * seconds));
    }

    static String joules(Context context, double joules) {
        return measure(context, joules, MeasureUnit.JOULE, decimals(joules));
    }

    static String hertz(Context context, double hertz) {
        return measure(context, hertz, MeasureUnit.HERTZ, hertz < 0.95 ? 1 : 0);
    }

    static String celsius(Context context, double degrees) {
        return measure(context, degrees, MeasureUnit.CELSIUS, 0);
    }

    static String megabytes(Context context, int count) {
        return measure(context, count, MeasureUnit.MEGABYTE, 0);
    }

    static String minutes(Context context, int minutes) {
        return minutes < 120 ? measure(context, minutes, MeasureUnit.MINUTE, 0)
            : measure(context, minutes / 60.0, MeasureUnit.HOUR, 1);
    }

    static String bytes(Context context, long bytes) {
        return Formatter.formatShortFileSize(context, bytes);
    }

    static String percent(Context context, double share, int decimals) {
        NumberFormat format = NumberFormat.getPercentInstance(locale(context));
        format.setMaximumFractionDigits(decimals);
        return format.format(share);
    }

    static String number(Context context, long number) {
        return NumberFormat.getIntegerInstance(locale(context)).format(number);
    }

    /**
     * Return a time that is left, in the one unit that people would use. It is rounded up, so that TalkBack, which
     * reads every change, is not talking all the time.
     */
    static String roughly(Context context, double seconds) {
        if (seconds < 2 * MINUTE) {
            double rounded = seconds <= FEW_SECONDS ? seconds : FEW_SECONDS * Math.ceil(seconds / FEW_SECONDS);
            return plural(context, R.plurals.seconds_words, rounded);
        }
        return seconds < 2 * HOUR ? plural(context, R.plurals.minutes_words, seconds / MINUTE)
            : plural(context, R.plurals.hours_words, seconds / HOUR);
    }

    private static String plural(Context context, int words, double value) {
        int count = (int) Math.ceil(value);
        return context.getResources().getQuantityString(words, count, count);
    }

    /** Return an hour of the day by the owner's clock of 12 or 24 hours. */
    static String hour(Context context, int hour) {
        Calendar time = Calendar.getInstance();
        time.set(2000, Calendar.JANUARY, 1, hour, 0, 0);
        return DateFormat.getTimeFormat(context).format(new Date(time.getTimeInMillis()));
    }

    static String moment(Context context, long millis) {
        return DateUtils.formatDateTime(context, millis,
            DateUtils.FORMAT_SHOW_DATE | DateUtils.FORMAT_SHOW_TIME | DateUtils.FORMAT_ABBREV_MONTH);
    }
}
