package org.edgefl.values;

import java.util.regex.Pattern;
import org.edgefl.json.InvalidJson;
import org.edgefl.wire.Digests;

/** Names and digests in documents: checked before they become part of a path or a request. */
final class Identifiers {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._:-]{0,127}");

    private Identifiers() {}

    static String name(String text, String field) {
        if (!NAME.matcher(text).matches()) {
            throw new InvalidJson("'" + field + "' is not a name of letters, digits and ._:-");
        }
        return text;
    }

    static String digest(String text, String field) {
        if (text != null && !Digests.isDigest(text)) {
            throw new InvalidJson("'" + field + "' is not a digest");
        }
        return text;
    }
}
