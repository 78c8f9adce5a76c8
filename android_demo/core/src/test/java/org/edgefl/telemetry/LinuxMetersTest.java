package org.edgefl.telemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What Linux shows, read from a copy of its files. */
class LinuxMetersTest {
    @TempDir
    private Path root;

    private void put(String name, String text) throws IOException {
        Path file = root.resolve(name);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text + "\n");
    }

    private void cpuTicks(int user, int system) throws IOException {
        put("proc/self/stat", "7 (a (program) name) R 1 7 3 0 -1 4194304 131 0 0 0 " + user + " " + system + " 0 0 20");
    }

    @Test
    void energyIsAnEstimateThatNamesItsAssumption() throws IOException {
        cpuTicks(100, 50);
        LinuxMeters meters = new LinuxMeters(root, "aarch64");
        meters.begin();
        cpuTicks(250, 100);
        Map<String, Object> energy = meters.energy();
        assertEquals(2.0 * 1.2, (Double) energy.get("joules"), 1e-9);
        assertEquals("CPU seconds x 1.2 W a core", energy.get("source"));
        assertEquals("process", energy.get("scope"));
        assertEquals("estimated", energy.get("provenance"));
        assertNull(energy.get("plugged"));
        LinuxMeters other = new LinuxMeters(root, "amd64");
        other.begin();
        assertEquals("CPU seconds x 6 W a core", other.energy().get("source"));
    }

    @Test
    void theHottestZoneOfTheProcessorCountsAndNoOther() throws IOException {
        assertNull(new ProcessorHeat(root).celsius());
        put("sys/class/thermal/thermal_zone0/type", "battery");
        put("sys/class/thermal/thermal_zone0/temp", "90000");
        put("sys/class/thermal/thermal_zone1/type", "cpu-thermal");
        put("sys/class/thermal/thermal_zone1/temp", "51500");
        put("sys/class/thermal/thermal_zone2/type", "CPU-1");
        put("sys/class/thermal/thermal_zone2/temp", "60500");
        put("sys/class/thermal/thermal_zone3/type", "cpu-off");
        put("sys/class/thermal/thermal_zone3/temp", "-273150");
        assertEquals(60.5, new ProcessorHeat(root).celsius());
        LinuxMeters meters = new LinuxMeters(root, "aarch64");
        meters.begin();
        put("sys/class/thermal/thermal_zone1/temp", "70000");
        assertEquals(60.5, meters.thermal().get("start_celsius"));
        assertEquals(70.0, meters.thermal().get("end_celsius"));
        assertNull(meters.thermal().get("throttled"));
    }

    @Test
    void throttlingIsToldByCountersAndByCoolingDevices() throws IOException {
        put("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3");
        LinuxMeters meters = new LinuxMeters(root, "amd64");
        meters.begin();
        assertEquals(false, meters.thermal().get("throttled"));
        put("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "4");
        assertEquals(true, meters.thermal().get("throttled"));
        meters.begin();
        put("sys/class/thermal/cooling_device0/type", "cpufreq-cpu0");
        put("sys/class/thermal/cooling_device0/cur_state", "2");
        assertEquals(false, meters.thermal().get("throttled"));
        meters.begin();
        assertEquals(true, meters.thermal().get("throttled"));
    }

    @Test
    void aSystemThatShowsNothingHasNoSections() {
        LinuxMeters meters = new LinuxMeters(root, "amd64");
        meters.begin();
        assertNull(meters.energy());
        assertNull(meters.thermal());
    }

    @Test
    void peakMemoryIsMeasuredIfItCanBeResetAndElseAnUpperBound() throws IOException {
        put("proc/self/status", "VmHWM:\t    3000 kB\nVmRSS:\t    2000 kB");
        LinuxMeters meters = new LinuxMeters(root, "amd64");
        meters.begin();
        assertEquals("measured", meters.memory().get("provenance"));
        assertEquals(2000L * 1024, meters.memory().get("baseline_bytes"));
        assertEquals(3000L * 1024, meters.memory().get("peak_bytes"));
        Path clear = root.resolve("proc/self/clear_refs");
        Files.delete(clear);
        Files.createDirectory(clear);
        meters.begin();
        assertEquals("estimated", meters.memory().get("provenance"));
    }

    @Test
    void externalPowerIsToldBySuppliesAndBatteries() throws IOException {
        PowerSupplies supplies = new PowerSupplies(root);
        assertNull(supplies.plugged());
        put("sys/class/power_supply/BAT0/type", "Battery");
        put("sys/class/power_supply/BAT0/status", "Discharging");
        put("sys/class/power_supply/mouse/type", "Battery");
        put("sys/class/power_supply/mouse/scope", "Device");
        put("sys/class/power_supply/mouse/status", "Charging");
        assertFalse(supplies.plugged());
        put("sys/class/power_supply/AC/type", "Mains");
        put("sys/class/power_supply/AC/online", "1");
        assertTrue(supplies.plugged());
        put("sys/class/power_supply/AC/online", "0");
        put("sys/class/power_supply/BAT0/status", "Full");
        assertTrue(supplies.plugged());
    }
}
