package org.edgefl.desktop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.edgefl.agent.Condition;
import org.edgefl.agent.HoursCondition;
import org.edgefl.desktop.Main.WrongUsage;
import org.edgefl.telemetry.PowerSupplies;
import org.edgefl.telemetry.ProcessorHeat;
import org.edgefl.values.Refusal;
import org.edgefl.values.Refusal.Reason;

/**
 * The owner's conditions that Linux shows, with the names and meanings of {@code edgefl join}.
 *
 * <p>What the system does not show forbids nothing, except mains power: an owner who requires it means it.
 */
final class SystemConditions {
    private static final Pattern HOURS = Pattern.compile("([01]?\\d|2[0-3])-([01]?\\d|2[0-3])");
    private static final Path PLATFORM_PROFILE = Path.of("/sys/firmware/acpi/platform_profile");

    private SystemConditions() {}

    /** Return the conditions that a command line asks for. */
    static List<Condition> of(JoinOptions options) {
        List<Condition> conditions = new ArrayList<>();
        if (options.has("--mains-only")) {
            PowerSupplies supplies = new PowerSupplies();
            conditions.add(() -> mainsOnly(supplies.plugged()));
        }
        if (options.has("--outside-battery-saver")) {
            conditions.add(() -> savesBattery()
                ? new Refusal(Reason.BATTERY_SAVER, "the system saves battery") : null);
        }
        if (options.has("--below-celsius")) {
            ProcessorHeat heat = new ProcessorHeat();
            double most = options.number("--below-celsius", 0, 1, 150);
            conditions.add(() -> below(heat.celsius(), most));
        }
        if (options.has("--hours")) {
            Matcher hours = HOURS.matcher(options.text("--hours", null));
            if (!hours.matches()) {
                throw new WrongUsage("--hours must be like 22-6");
            }
            conditions.add(new HoursCondition(
                Integer.parseInt(hours.group(1)), Integer.parseInt(hours.group(2)), LocalTime::now));
        }
        return conditions;
    }

    static Refusal mainsOnly(Boolean plugged) {
        if (Boolean.TRUE.equals(plugged)) {
            return null;
        }
        return new Refusal(Reason.POWER, plugged == null
            ? "it is not known whether the device is on mains power" : "not on mains power");
    }

    static Refusal below(Double celsius, double most) {
        return celsius == null || celsius < most ? null : new Refusal(Reason.TEMPERATURE,
            String.format(Locale.ROOT, "the device has %.1f degrees, and may work below %.1f", celsius, most));
    }

    private static boolean savesBattery() {
        try {
            String profile = new String(Files.readAllBytes(PLATFORM_PROFILE), StandardCharsets.US_ASCII);
            return profile.trim().equals("low-power");
        } catch (IOException unknown) {
            return false;
        }
    }
}
