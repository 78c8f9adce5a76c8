package org.edgefl.app.telemetry;

import java.util.Map;

/** An instrument that measures the energy of a task. */
interface EnergyMeter extends AutoCloseable {
    /** Note where it stands; return whether it works now. */
    boolean begin();

    /**
     * Return the section {@code energy} since the beginning, or null if the instrument failed in between.
     *
     * @param plugged whether the phone was on external power; null if that is not known, or changed
     */
    Map<String, Object> energy(Boolean plugged);

    @Override
    void close();
}
