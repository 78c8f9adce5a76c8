package org.edgefl.app.telemetry;

import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.edgefl.telemetry.TelemetrySections;

/**
 * Energy by the battery's current times its voltage, sampled about once a second while it discharges.
 *
 * <p>The current is documented in microamperes, negative while discharging. Some vendors report milliamperes, and some
 * the opposite sign, so the magnitude counts, and the unit follows from the largest value of the task: no phone trains
 * on 10 mA (10,000 microamperes) or less, and none on 10 A (10,000 milliamperes) or more.
 */
final class BatteryEnergy implements EnergyMeter {
    static final String SOURCE = "android battery counter";

    private static final double LEAST_MICROAMPERES = 10_000;
    private static final int LEAST_SAMPLES = 2;
    private static final long PERIOD_MILLISECONDS = 1000;

    private final Battery battery;
    private final CountDownLatch ended = new CountDownLatch(1);
    private double sum;
    private double largest;
    private double latest = Double.NaN;
    private long latestNanos;
    private double seconds;
    private int samples;
    private boolean failed;

    BatteryEnergy(Battery battery) {
        this.battery = battery;
    }

    /** Begin to sample, on a thread of its own. */
    @Override
    public boolean begin() {
        sample(System.nanoTime());
        if (failed) {
            return false;
        }
        Thread sampler = new Thread(() -> {
            while (!isClosed(PERIOD_MILLISECONDS)) {
                sample(System.nanoTime());
            }
        }, "edgefl-battery");
        sampler.setDaemon(true);
        sampler.start();
        return true;
    }

    private boolean isClosed(long milliseconds) {
        try {
            return ended.await(milliseconds, TimeUnit.MILLISECONDS);
        } catch (InterruptedException now) {
            return true;
        }
    }

    /** Take a sample. The time since the one before counts with the mean of both: the trapezoidal rule. */
    synchronized void sample(long nanos) {
        double current;
        double power;
        try {
            current = battery.rawCurrent();
            power = current * battery.volts();
            failed |= Double.isNaN(power) || !Boolean.FALSE.equals(battery.isPlugged());
        } catch (RuntimeException noAnswer) {
            // On the sampler's thread, nobody else would catch it: it would end the app.
            failed = true;
            return;
        }
        if (failed) {
            return;
        }
        if (samples > 0) {
            double elapsed = (nanos - latestNanos) / 1e9;
            seconds += elapsed;
            sum += elapsed * (power + latest) / 2;
        }
        largest = Math.max(largest, current);
        latest = power;
        latestNanos = nanos;
        samples++;
    }

    @Override
    public Map<String, Object> energy(Boolean plugged) {
        return energy(System.nanoTime());
    }

    /** Return the section {@code energy} until now; null if a sample is missing, or the phone was plugged in. */
    synchronized Map<String, Object> energy(long nanos) {
        sample(nanos);
        if (failed || samples < LEAST_SAMPLES || seconds <= 0) {
            return null;
        }
        double unit = largest < LEAST_MICROAMPERES ? 1e-3 : 1e-6;
        return TelemetrySections.energy(
            sum * unit, SOURCE, "device", TelemetrySections.MEASURED, (samples - 1) / seconds, null, false);
    }

    @Override
    public void close() {
        ended.countDown();
    }
}
