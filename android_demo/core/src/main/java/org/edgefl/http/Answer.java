package org.edgefl.http;

import java.io.Closeable;
import java.io.InputStream;

/** A response whose body is still to be read. */
public interface Answer extends Closeable {
    /** The HTTP status. */
    int status();

    /** Return a header by its name in any case, or null. */
    String header(String name);

    /** The body as it was sent, compressed or not. Ends early with an error if the connection breaks. */
    InputStream body();

    /** The pin of the key that the connection was checked with, or null without TLS. */
    String pin();

    @Override
    void close();
}
