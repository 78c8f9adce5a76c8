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
 */
public record Request(
        String method, String path, String secret, Map<String, String> headers, Content content, double waitSeconds) {

    /** Return a request that sends nothing and expects an answer at once. */
    public static Request get(String path, String secret) {
        return new Request("GET", path, secret, Map.of(), null, 0);
    }

    /** The method and the path; never the secret. */
    @Override
    public String toString() {
        return method + " " + path;
    }
}
