package org.edgefl.http;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;

/** Sockets that speak TLS 1.2 or 1.3 only: older systems still offer less. */
final class ModernTls extends SSLSocketFactory {
    private final SSLSocketFactory plain;

    ModernTls(SSLSocketFactory plain) {
        this.plain = plain;
    }

    private static Socket modern(Socket socket) {
        if (socket instanceof SSLSocket secure) {
            List<String> allowed = new ArrayList<>();
            for (String protocol : secure.getSupportedProtocols()) {
                if (protocol.equals("TLSv1.2") || protocol.equals("TLSv1.3")) {
                    allowed.add(protocol);
                }
            }
            secure.setEnabledProtocols(allowed.toArray(new String[0]));
        }
        return socket;
    }

    @Override
    public Socket createSocket() throws IOException {
        return modern(plain.createSocket());
    }

    @Override
    public Socket createSocket(Socket socket, String host, int port, boolean autoClose) throws IOException {
        return modern(plain.createSocket(socket, host, port, autoClose));
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
        return modern(plain.createSocket(host, port));
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress from, int fromPort) throws IOException {
        return modern(plain.createSocket(host, port, from, fromPort));
    }

    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
        return modern(plain.createSocket(host, port));
    }

    @Override
    public Socket createSocket(InetAddress host, int port, InetAddress from, int fromPort) throws IOException {
        return modern(plain.createSocket(host, port, from, fromPort));
    }

    @Override
    public String[] getDefaultCipherSuites() {
        return plain.getDefaultCipherSuites();
    }

    @Override
    public String[] getSupportedCipherSuites() {
        return plain.getSupportedCipherSuites();
    }
}
