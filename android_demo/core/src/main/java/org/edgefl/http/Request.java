package org.edgefl.http;

import java.util.Map;

/**
 * One request to the coordinator.
 *
 * @param path what follows the coordinator's URL
 * @param secret the bearer of the request
 * @param headers further headers
 * @param content what is sent, or null
 * @param waitSeconds how long the coordinator may keep it waiting on purpose
 * @param wholeSeconds how long the whole exchange may take beyond that: a server that drips must not hold a device
 */
public record Request(
        String method, String path, String secret, Map<String, String> headers, Content content, double waitSeconds,
        double wholeSeconds) {
    /** Enough for anything but a download. */
    public static final double USUAL_SECONDS = 120;

    /** Return a request with the usual time-out. */
    public static Request of(
            String method, String path, String secret, Map<String, String> headers, Content content, double wait) {
        return new Request(method, path, secret, headers, content, wait, USUAL_SECONDS);
    }

    /** Return a request that sends nothing and expects an answer at once. */
    public static Request get(String path, String secret) {
        return of("GET", path, secret, Map.of(), null, 0);
    }

    /** The method and the path; never the secret. */
    @Override
    public String toString() {
        return method + " " + path;
    }
}
