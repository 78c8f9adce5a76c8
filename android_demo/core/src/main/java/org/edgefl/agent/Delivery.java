package org.edgefl.agent;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.edgefl.http.Content;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.values.Receipt;
import org.edgefl.wire.Packing;
import org.edgefl.wire.Planes;

/**
 * A result on its way: compressed if that is accepted and saves a tenth.
 *
 * <p>What is compressed is in memory, and therefore has at most {@link Planes#MOST_BYTES}. A larger result is sent as
 * it is, piece by piece from its file.
 */
final class Delivery {
    private static final String TYPE = "application/vnd.safetensors";
    private static final double WORTH_IT = 0.9;

    private final CoordinatorClient client;
    private final String token;

    Delivery(CoordinatorClient client, String token) {
        this.client = client;
        this.token = token;
    }

    /** Send a result from its file. */
    Receipt send(String taskId, Path file, String codings) throws IOException {
        try {
            return client.deliver(token, taskId, packed(file, codings));
        } catch (ProblemAnswer problem) {
            if (problem.status() != 415) {
                throw problem;
            }
            return client.deliver(token, taskId, new Content(TYPE, null, null, file));
        }
    }

    private static Content packed(Path file, String codings) throws IOException {
        if (Files.size(file) <= Planes.MOST_BYTES) {
            byte[] body = Files.readAllBytes(file);
            boolean planes = codings != null && codings.contains("edgefl-planes");
            boolean gzip = codings == null || codings.contains("gzip");
            String coding = planes ? Packing.PLANES : Packing.GZIP;
            byte[] packed = planes || gzip ? Packing.pack(body, coding) : body;
            if (packed.length <= WORTH_IT * body.length) {
                return new Content(TYPE, coding, packed, null);
            }
        }
        return new Content(TYPE, null, null, file);
    }
}
