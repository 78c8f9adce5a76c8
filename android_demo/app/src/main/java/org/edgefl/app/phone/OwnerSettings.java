package org.edgefl.app.phone;

/**
 * The owner's limits and wishes. The defaults cost nothing that an owner would notice.
 *
 * @param atNight whether to train by itself: charging, unmetered, idle, battery not low
 * @param fromHour the first hour of the night, 0 to 23
 * @param toHour the hour at which the night ends; equal hours mean the whole day
 * @param megabytesADay most traffic of a day; 0 means no limit
 * @param mostDegrees the battery's temperature in degrees Celsius above which no work is done
 * @param minutesATask the longest time of a task, from its arrival to its result, the day between two nights included
 */
public record OwnerSettings(
        boolean atNight, int fromHour, int toHour, int megabytesADay, int mostDegrees, int minutesATask) {
    /** What a phone begins with. */
    public static final OwnerSettings DEFAULT = new OwnerSettings(false, 22, 7, 200, 40, 2880);
}
