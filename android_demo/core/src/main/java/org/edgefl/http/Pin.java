package org.edgefl.http;

import java.security.PublicKey;
import java.util.Base64;
import java.util.Collection;
import java.util.HashSet;
import java.util.regex.Pattern;
import org.edgefl.wire.Digests;

/** Pins: names of public keys. A coordinator's certificate is trusted if the pin of its key is known. */
public final class Pin {
    /** Most pins of a coordinator. */
    public static final int MOST = 8;

    private static final Pattern FORM = Pattern.compile("sha256:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]");

    private Pin() {}

    /** Return the pin of a public key: SHA-256 of its SubjectPublicKeyInfo. */
    public static String of(PublicKey key) {
        return of(key.getEncoded());
    }

    /** Return the pin of an encoded SubjectPublicKeyInfo. */
    public static String of(byte[] subjectPublicKeyInfo) {
        byte[] hash = Digests.sha256().digest(subjectPublicKeyInfo);
        return "sha256:" + Base64.getUrlEncoder().withoutPadding().encodeToString(hash);
    }

    /** Return whether a text is a pin. */
    public static boolean isPin(String text) {
        return FORM.matcher(text).matches();
    }

    /** Return whether these are up to 8 pins, no two of them equal. */
    public static boolean areValid(Collection<String> pins) {
        return pins.size() <= MOST && new HashSet<>(pins).size() == pins.size() && pins.stream().allMatch(Pin::isPin);
    }
}
