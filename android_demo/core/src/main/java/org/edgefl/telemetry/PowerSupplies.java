package org.edgefl.telemetry;

import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;

/** Whether a Linux device is on external power, by the supplies that the system shows. */
public final class PowerSupplies {
    private final SystemFiles files;

    /** The supplies of this machine. */
    public PowerSupplies() {
        this(Paths.get("/"));
    }

    PowerSupplies(Path root) {
        this.files = new SystemFiles(root);
    }

    /** Return whether the device is plugged in, or null where the system does not say. */
    public Boolean plugged() {
        List<String> batteries = new ArrayList<>();
        boolean external = false;
        for (String supply : files.entries("sys/class/power_supply", "")) {
            String type = String.valueOf(files.text(supply + "/type"));
            if ("Device".equals(files.text(supply + "/scope"))) {
                continue; // It powers something else, such as a wireless mouse.
            }
            if (type.equals("Battery")) {
                batteries.add(String.valueOf(files.text(supply + "/status")));
            } else if (type.startsWith("Mains") || type.startsWith("USB") || type.startsWith("Wireless")) {
                Long online = files.whole(supply + "/online");
                if (online != null && online != 0) {
                    return true;
                }
                external |= online != null;
            }
        }
        if (batteries.contains("Discharging")) {
            return false;
        }
        if (batteries.contains("Charging") || batteries.contains("Full")) {
            return true;
        }
        // A running device without a battery is powered by something that the system does not show.
        return external && !batteries.isEmpty() ? false : null;
    }
}
