package org.edgefl.http;

import java.io.ByteArrayInputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.URL;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLException;

/** Requests by {@code HttpURLConnection}, which phones have too. Redirects are never followed. */
public final class UrlTransport implements Transport {
    private static final int CONNECT_MILLISECONDS = 20_000;
    private static final int READ_MILLISECONDS = 30_000;
    private static final int LONG_UPLOAD = 1 << 20;

    private final String url;
    private final TrustedCertificates trusted;
    private final String software;
    private final Meter meter;
    private volatile HttpURLConnection current;
    private volatile boolean aborted;

    /** A transport to one coordinator. */
    public UrlTransport(String url, TrustedCertificates trusted, String software, Meter meter) {
        this.url = url;
        this.trusted = trusted;
        this.software = software;
        this.meter = meter;
    }

    @Override
    public Answer send(Request request) {
        try {
            return exchange(request);
        } catch (SSLException error) {
            throw trusted.failure(error);
        } catch (IOException error) {
            throw new Unreachable("no response to " + request + ": " + error.getMessage(), 0, error);
        }
    }

    private Answer exchange(Request request) throws IOException {
        long began = System.nanoTime();
        HttpURLConnection connection = open(request);
        current = connection;
        if (aborted) {
            throw new IOException("stopped");
        }
        meter.sent(sentHeaderBytes(request, connection));
        if (request.content() != null) {
            connection.setDoOutput(true);
            connection.setFixedLengthStreamingMode(request.content().length());
            try (OutputStream out = connection.getOutputStream()) {
                request.content().writeTo(out, meter);
            } catch (IOException error) {
                if (!wasAnswered(connection)) {
                    throw error;
                }
            }
        }
        int status = connection.getResponseCode();
        if (status < 0) {
            throw new IOException("not HTTP");
        }
        meter.received(headerBytes(String.valueOf(connection.getHeaderField(0)), connection.getHeaderFields()));
        double most = request.waitSeconds() + request.wholeSeconds();
        return new Received(connection, status, meter, began + (long) (1e9 * most));
    }

    /** Return whether a response came before all was sent, such as 413; asking does not send anything more. */
    private static boolean wasAnswered(HttpURLConnection connection) {
        try {
            return connection.getResponseCode() >= 400;
        } catch (IOException none) {
            return false;
        }
    }

    private HttpURLConnection open(Request request) throws IOException {
        URL target = new URL(url + request.path());
        boolean here = CoordinatorUrl.isThisMachine(target.getHost());
        HttpURLConnection connection =
            (HttpURLConnection) (here ? target.openConnection(Proxy.NO_PROXY) : target.openConnection());
        if (connection instanceof HttpsURLConnection secure) {
            secure.setSSLSocketFactory(trusted.sockets());
            if (trusted.isPinned()) {
                secure.setHostnameVerifier((host, session) -> true);
            }
        }
        connection.setInstanceFollowRedirects(false);
        connection.setUseCaches(false);
        connection.setConnectTimeout(CONNECT_MILLISECONDS);
        connection.setReadTimeout(READ_MILLISECONDS + (int) (1000 * request.waitSeconds()));
        connection.setRequestMethod(request.method());
        connection.setRequestProperty("User-Agent", software);
        connection.setRequestProperty("Accept", "*/*");
        // The JVM adds both where caches are off; set here, they are counted, and sent by every system.
        connection.setRequestProperty("Cache-Control", "no-cache");
        connection.setRequestProperty("Pragma", "no-cache");
        // Without this header, Android's stack unpacks gzip by itself, and bytes could not be counted.
        connection.setRequestProperty("Accept-Encoding", "identity");
        request.headers().forEach(connection::setRequestProperty);
        if (request.content() != null) {
            connection.setRequestProperty("Content-Type", request.content().type());
            if (request.content().coding() != null) {
                connection.setRequestProperty("Content-Encoding", request.content().coding());
            }
            if (request.content().length() >= LONG_UPLOAD) {
                connection.setRequestProperty("Expect", "100-continue");
            }
        }
        connection.setRequestProperty("Authorization", "Bearer " + request.secret());
        return connection;
    }

    /** Reckon the bytes of a request's headers: the stack does not show those that it adds, nor the secret. */
    private static long sentHeaderBytes(Request request, HttpURLConnection connection) throws IOException {
        URL target = connection.getURL();
        Map<String, List<String>> headers = new HashMap<>(connection.getRequestProperties());
        headers.put("Authorization", List.of("Bearer " + request.secret()));
        headers.put("Host", List.of(target.getHost() + (target.getPort() < 0 ? "" : ":" + target.getPort())));
        headers.put("Connection", List.of("keep-alive"));
        if (request.content() != null) {
            headers.put("Content-Length", List.of(String.valueOf(request.content().length())));
        }
        return headerBytes(request.method() + " " + target.getFile() + " HTTP/1.1", headers);
    }

    private static long headerBytes(String first, Map<String, List<String>> headers) {
        long count = first.length() + 4;
        for (Map.Entry<String, List<String>> header : headers.entrySet()) {
            for (String value : header.getKey() == null ? List.<String>of() : header.getValue()) {
                count += header.getKey().length() + value.length() + 4;
            }
        }
        return count;
    }

    @Override
    public void abort() {
        aborted = true;
        HttpURLConnection connection = current;
        if (connection != null) {
            connection.disconnect();
        }
    }

    /** A response that is read piece by piece. */
    private static final class Received implements Answer {
        private final HttpURLConnection connection;
        private final int status;
        private final InputStream body;

        Received(HttpURLConnection connection, int status, Meter meter, long until) throws IOException {
            this.connection = connection;
            this.status = status;
            InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream();
            this.body = new Counted(in == null ? new ByteArrayInputStream(new byte[0]) : in, connection, meter, until);
        }

        @Override
        public int status() {
            return status;
        }

        @Override
        public String header(String name) {
            return connection.getHeaderField(name);
        }

        @Override
        public InputStream body() {
            return body;
        }

        @Override
        public String pin() {
            try {
                return connection instanceof HttpsURLConnection secure
                    ? Pin.of(secure.getServerCertificates()[0].getPublicKey()) : null;
            } catch (SSLException | IllegalStateException unknown) {
                return null;
            }
        }

        @Override
        public void close() {
            try {
                body.close();
            } catch (IOException alreadyBroken) {
                connection.disconnect();
            }
        }
    }

    /** Counts a body as it is read, and takes an end before its length for a broken connection. */
    private static final class Counted extends FilterInputStream {
        private final long length;
        private final Meter meter;
        private final long until;
        private long count;

        Counted(InputStream in, HttpURLConnection connection, Meter meter, long until) {
            super(in);
            this.length = connection.getContentLengthLong();
            this.meter = meter;
            this.until = until;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
        }

        @Override
        public int read(byte[] to, int from, int most) throws IOException {
            int found = super.read(to, from, most);
            if (System.nanoTime() - until > 0) {
                throw new IOException("the response took too long");
            }
            if (found > 0) {
                count += found;
                meter.received(found);
            } else if (found < 0 && length >= 0 && count < length) {
                throw new IOException("the connection broke after " + count + " of " + length + " bytes");
            }
            return found;
        }
    }
}
