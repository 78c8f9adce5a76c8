package org.edgefl.values;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.edgefl.json.JsonObject;

/**
 * A device's refusal of a task.
 *
 * @param reason one of the protocol's reasons
 * @param message for people
 */
public record Refusal(Reason reason, String message) {
    private static final int MOST_CHARACTERS = 200;

    /** The reasons of the protocol. */
    public enum Reason {
        POWER, TEMPERATURE, THERMAL, BATTERY_SAVER, METERED, HOURS, ENERGY, TRAFFIC, MEMORY, STORAGE, DATA, DIVERGED,
        DEADLINE, UNSUPPORTED, BROKEN, STOPPED;

        /** The name in JSON. */
        public String text() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Read a refusal that was written. */
    public static Refusal of(JsonObject fields) {
        Reason reason = fields == null ? Reason.BROKEN : Reason.valueOf(fields.text("reason").toUpperCase(Locale.ROOT));
        return new Refusal(reason, fields == null ? "the refusal was damaged" : fields.text("message"));
    }

    /** Whether a condition of the owner is the reason, so that a smaller task would not help. */
    public boolean isOwners() {
        return switch (reason) {
            case POWER, TEMPERATURE, THERMAL, BATTERY_SAVER, METERED, HOURS, ENERGY, TRAFFIC -> true;
            default -> false;
        };
    }

    /** Return the document; its message is one line that the coordinator accepts. */
    public Map<String, Object> toJson() {
        StringBuilder line = new StringBuilder();
        for (char next : message.toCharArray()) {
            boolean control = next < ' ' || (next >= 0x7f && next <= 0x9f) || Character.isSurrogate(next);
            line.append(control ? ' ' : next);
        }
        String clean = line.substring(0, Math.min(line.length(), MOST_CHARACTERS)).trim();
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("schema", "edgefl.refusal/1");
        fields.put("reason", reason.text());
        fields.put("message", clean.isEmpty() ? reason.text() : clean);
        return fields;
    }
}
