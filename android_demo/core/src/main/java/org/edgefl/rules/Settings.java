package org.edgefl.rules;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.edgefl.json.JsonObject;

/** The settings of a rule: what is not known or not allowed makes the task one that this client cannot do. */
public final class Settings {
    private final JsonObject fields;
    private final Set<String> asked = new HashSet<>();

    /** Settings as a plan has them. */
    public Settings(JsonObject fields) {
        this.fields = fields;
    }

    /** Return a number in a range, both ends included, or the default. */
    double number(String name, double otherwise, double least, double most) {
        asked.add(name);
        if (!fields.has(name)) {
            return otherwise;
        }
        if (!(fields.get(name) instanceof Number number) || !(number.doubleValue() >= least)
            || !(number.doubleValue() <= most)) {
            throw notAllowed(name);
        }
        return number.doubleValue();
    }

    /** Return a number above 0, or null if there is none. */
    Double positiveOrNull(String name) {
        asked.add(name);
        if (!fields.has(name)) {
            return null;
        }
        double value = number(name, 0, 0, Double.MAX_VALUE);
        if (value == 0) {
            throw notAllowed(name);
        }
        return value;
    }

    /** Return a truth value, or the default. */
    boolean flag(String name, boolean otherwise) {
        asked.add(name);
        if (fields.has(name) && !(fields.get(name) instanceof Boolean)) {
            throw notAllowed(name);
        }
        return fields.flag(name, otherwise);
    }

    /** Return a text, or the default. */
    String text(String name, String otherwise) {
        asked.add(name);
        if (!fields.has(name)) {
            return otherwise;
        }
        if (!(fields.get(name) instanceof String text)) {
            throw notAllowed(name);
        }
        return text;
    }

    /** Return one of some texts; the first is the default. */
    String choice(String name, String... allowed) {
        String value = text(name, allowed[0]);
        if (!Arrays.asList(allowed).contains(value)) {
            throw notAllowed(name);
        }
        return value;
    }

    /** Refuse settings that nobody asked for. */
    void end() {
        for (String name : fields.names()) {
            if (!asked.contains(name)) {
                throw new Unsupported("this client does not know the setting '" + name + "' of the rule");
            }
        }
    }

    private Unsupported notAllowed(String name) {
        return new Unsupported("the setting '" + name + "' of the rule is " + fields.get(name) + ", which it cannot be");
    }
}
