package org.edgefl.http;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonReader;
import org.edgefl.wire.Names;

/**
 * What a device needs to join, as one URI: docs/protocol.md, "Pairing".
 *
 * @param url the coordinator's URL, without a slash at its end
 * @param key the join key, or null: ask for it. Never stored, never shown
 * @param federation the federation's name for people, or null
 * @param pins pins of the coordinator's keys; empty means the usual verification
 */
public record Pairing(String url, String key, String federation, List<String> pins) {
    private static final int MOST_CHARACTERS = 2048;
    private static final int MOST_FIELDS = 32;
    private static final String APP = "edgefl://join?";
    private static final Pattern FIELD =
        Pattern.compile("([a-z][a-z0-9_]{0,31})=((?:[A-Za-z0-9._~:/!$'()*,;@?-]|%[0-9A-Fa-f]{2})+)");
    private static final Pattern KEY = Pattern.compile("edgefl-key-[A-Za-z0-9_-]{1,128}");
    private static final Pattern FEDERATION = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._:-]{0,127}");

    /** Own copy of the pins. */
    public Pairing {
        pins = List.of(pins.toArray(new String[0]));
    }

    /** Read a pairing URI of either form; whatever is not exactly one is refused. */
    public static Pairing parse(String uri, boolean allowInsecure) {
        if (uri.length() > MOST_CHARACTERS || !uri.chars().allMatch(next -> next >= '!' && next <= '~')) {
            throw new InvalidPairing("a pairing URI has at most 2,048 characters, all of them of ASCII, without spaces");
        }
        Map<String, List<String>> fields;
        if (uri.startsWith(APP)) {
            fields = fields(uri.substring(APP.length()));
        } else {
            fields = fieldsOfPage(uri);
        }
        String url = once(fields, "url");
        if (url == null) {
            throw new InvalidPairing("the pairing URI does not say where the coordinator is");
        }
        String key = matching(once(fields, "key"), KEY, "key");
        String federation = matching(once(fields, "federation"), FEDERATION, "federation");
        List<String> pins = fields.getOrDefault("pin", List.of());
        if (!Pin.areValid(pins) || (!pins.isEmpty() && url.startsWith("http://"))) {
            throw new InvalidPairing("the pairing URI has pins that are not valid, or pins for http://");
        }
        return new Pairing(CoordinatorUrl.checked(url, allowInsecure), key, federation, pins);
    }

    private static Map<String, List<String>> fieldsOfPage(String uri) {
        int fragment = uri.indexOf('#');
        String page = fragment < 0 ? "" : uri.substring(0, fragment);
        boolean web = page.startsWith("https://") || page.startsWith("http://");
        if (!web || !page.endsWith("/join")) {
            throw new InvalidPairing("a pairing URI begins with edgefl://join? or is a page .../join#...");
        }
        Map<String, List<String>> fields = fields(uri.substring(fragment + 1));
        if (fields.containsKey("url")) {
            throw new InvalidPairing("a link to a page names a second address");
        }
        fields.put("url", List.of(page.substring(0, page.length() - "/join".length())));
        return fields;
    }

    private static Map<String, List<String>> fields(String text) {
        String[] all = text.split("&", -1);
        if (all.length > MOST_FIELDS) {
            throw new InvalidPairing("the pairing URI has more than " + MOST_FIELDS + " fields");
        }
        Map<String, List<String>> found = new HashMap<>();
        for (String field : all) {
            Matcher parts = FIELD.matcher(field);
            if (!parts.matches()) {
                throw new InvalidPairing("the pairing URI has a field that is not name=value");
            }
            found.computeIfAbsent(parts.group(1), name -> new ArrayList<>()).add(unescaped(parts.group(2)));
        }
        return found;
    }

    private static String unescaped(String value) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (int i = 0; i < value.length(); i++) {
            if (value.charAt(i) == '%') {
                bytes.write(Integer.parseInt(value.substring(i + 1, i + 3), 16));
                i += 2;
            } else {
                bytes.write(value.charAt(i));
            }
        }
        String text;
        try {
            text = JsonReader.decode(bytes.toByteArray());
        } catch (InvalidJson error) {
            throw new InvalidPairing("the pairing URI has bytes that are not UTF-8");
        }
        if (!text.codePoints().allMatch(Names::isPrintable)) {
            throw new InvalidPairing("the pairing URI has characters that cannot be shown");
        }
        return text;
    }

    private static String once(Map<String, List<String>> fields, String name) {
        List<String> values = fields.getOrDefault(name, List.of());
        if (values.size() > 1) {
            throw new InvalidPairing("the pairing URI has '" + name + "' twice");
        }
        return values.isEmpty() ? null : values.get(0);
    }

    private static String matching(String value, Pattern form, String name) {
        if (value != null && !form.matcher(value).matches()) {
            throw new InvalidPairing("the pairing URI has a '" + name + "' that is not valid");
        }
        return value;
    }

    /** Write the form that opens an installed client. */
    public String toAppUri() {
        StringBuilder out = new StringBuilder(APP).append("url=");
        for (char next : url.toCharArray()) {
            boolean plain = next < 128 && (Character.isLetterOrDigit(next) || "-._~".indexOf(next) >= 0);
            out.append(plain ? String.valueOf(next) : String.format("%%%02X", (int) next));
        }
        String others = otherFields();
        return out + (others.isEmpty() ? "" : "&" + others);
    }

    /** Write the form that opens the coordinator's page. */
    public String toPageUri() {
        return url + "/join#" + otherFields();
    }

    private String otherFields() {
        List<String> fields = new ArrayList<>();
        if (key != null) {
            fields.add("key=" + key);
        }
        if (federation != null) {
            fields.add("federation=" + federation);
        }
        pins.forEach(pin -> fields.add("pin=" + pin));
        return String.join("&", fields);
    }

    /** Everything but the key. */
    @Override
    public String toString() {
        return "Pairing[" + url + ", " + federation + ", " + pins + "]";
    }
}
