package org.edgefl.http;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The URL of a coordinator, by the rules of docs/protocol.md: what is not exactly this is refused. */
public final class CoordinatorUrl {
    private static final int MOST_CHARACTERS = 512;
    private static final Pattern FORM = Pattern.compile(
        "(https?)://([A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|\\[[0-9A-Fa-f:.]{2,45}\\])(?::([1-9][0-9]{0,4}))?"
            + "((?:/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)*)");
    private static final Pattern FOUR = Pattern.compile("(?:(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)(?:\\.(?!$)|$)){4}");

    private CoordinatorUrl() {}

    /** Return a URL without slashes at its end, or refuse it. */
    public static String checked(String url, boolean allowInsecure) {
        String bare = url;
        while (bare.endsWith("/") && !bare.endsWith("://")) {
            bare = bare.substring(0, bare.length() - 1);
        }
        Matcher found = FORM.matcher(bare);
        boolean valid = url.length() <= MOST_CHARACTERS && found.matches()
            && (found.group(3) == null || Integer.parseInt(found.group(3)) <= 65535)
            && (!found.group(2).startsWith("[") || isIpv6(found.group(2).substring(1, found.group(2).length() - 1)));
        if (!valid) {
            throw new InvalidPairing("this is not the URL of a coordinator: it must be like https://10.0.0.5:8443");
        }
        if (found.group(1).equals("http") && !isThisMachine(found.group(2)) && !allowInsecure) {
            throw new InvalidPairing("http:// to another machine: everybody on the way could read the key");
        }
        return bare;
    }

    /** Return whether a host is the machine that this runs on. */
    static boolean isThisMachine(String host) {
        return host.equalsIgnoreCase("localhost") || host.equals("[::1]")
            || (FOUR.matcher(host).matches() && host.startsWith("127."));
    }

    /** Return whether a text is an address of IPv6: eight groups, of which one gap may stand for some. */
    static boolean isIpv6(String text) {
        String groups = text;
        int lastColon = text.lastIndexOf(':');
        if (text.indexOf('.') >= 0) {
            if (lastColon < 0 || !FOUR.matcher(text.substring(lastColon + 1)).matches()) {
                return false;
            }
            groups = text.substring(0, lastColon + 1) + "0:0";
        }
        int gap = groups.indexOf("::");
        if (gap < 0) {
            return count(groups) == 8;
        }
        int left = gap == 0 ? 0 : count(groups.substring(0, gap));
        int right = gap + 2 == groups.length() ? 0 : count(groups.substring(gap + 2));
        return left >= 0 && right >= 0 && left + right <= 7;
    }

    private static int count(String groups) {
        String[] found = groups.split(":", -1);
        for (String group : found) {
            if (!group.matches("[0-9A-Fa-f]{1,4}")) {
                return -1;
            }
        }
        return found.length;
    }
}
