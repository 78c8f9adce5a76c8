package org.edgefl.engine;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.edgefl.golden.GoldenFiles;
import org.edgefl.json.JsonObject;
import org.junit.jupiter.api.Test;

/** What a graph must not be, before the engine sees it. Field numbers are those of onnx.proto. */
class GraphCheckTest {
    private static byte[] field(int number, byte[]... contents) {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        for (byte[] content : contents) {
            body.writeBytes(content);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        varint(out, number << 3 | 2);
        varint(out, body.size());
        out.writeBytes(body.toByteArray());
        return out.toByteArray();
    }

    private static byte[] text(int number, String text) {
        return field(number, text.getBytes(StandardCharsets.UTF_8));
    }

    private static void varint(ByteArrayOutputStream out, int value) {
        int rest = value;
        for (; rest >= 128; rest >>>= 7) {
            out.write(rest & 127 | 128);
        }
        out.write(rest);
    }

    private static void refused(byte[] model) {
        assertThrows(InvalidGraph.class, () -> GraphCheck.check(model));
    }

    @Test
    void graphsOfTheExporterPass() {
        JsonObject golden = GoldenFiles.json("tasks.json");
        for (JsonObject example : golden.objects("cases")) {
            String digest = example.object("plan").text("graph");
            byte[] graph = Base64.getDecoder().decode(golden.object("artifacts").text(digest));
            GraphCheck.check(graph);
            byte[] half = Arrays.copyOf(graph, graph.length / 2);
            refused(half);
        }
    }

    @Test
    void dataInOtherFilesAreRefused() {
        byte[] external = field(13, text(1, "location"), text(2, "../../secret"));
        refused(field(7, field(5, external)));
        refused(field(7, field(5, new byte[] {14 << 3, 1})));
        byte[] attribute = field(5, text(1, "value"), field(5, external));
        refused(field(7, field(1, text(4, "Constant"), attribute)));
    }

    @Test
    void otherOperatorsFunctionsAndDepthsAreRefused() {
        refused(field(7, field(1, text(4, "Evil"), text(7, "com.example"))));
        refused(field(7, field(1, text(4, "Loop"))));
        byte[] graph = field(7, text(2, "empty"));
        byte[] both = new byte[graph.length + 4];
        System.arraycopy(graph, 0, both, 0, graph.length);
        System.arraycopy(field(25, new byte[1]), 0, both, graph.length, 4);
        refused(both);
        byte[] nested = field(1, text(4, "Scan"));
        for (int depth = 0; depth < 6; depth++) {
            nested = field(1, text(4, "Scan"), field(5, field(6, nested)));
        }
        refused(field(7, nested));
    }

    @Test
    void whatIsNoGraphAtAllIsRefused() {
        refused(new byte[0]);
        refused("<html></html>".getBytes(StandardCharsets.UTF_8));
        refused(new byte[] {7 << 3 | 2, (byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0xff, 15});
    }
}
