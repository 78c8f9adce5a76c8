package org.edgefl.apk;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where files begin in an APK: phones map libraries into memory page by page, and resources word by word. */
final class ApkAlignment {
    static final int PAGE = 16384;
    private static final int WORD = 4;
    private static final int END_RECORD = 0x06054b50;
    private static final int END_RECORD_BYTES = 22;
    private static final int ENTRY_BYTES = 46;
    private static final int LOCAL_BYTES = 30;

    private ApkAlignment() {}

    /** Throw unless every file is stored as it is and begins where it should. */
    static void check(Path apk) throws IOException {
        ByteBuffer zip = ByteBuffer.wrap(Files.readAllBytes(apk)).order(ByteOrder.LITTLE_ENDIAN);
        int end = zip.limit() - END_RECORD_BYTES; // APKs have no comment
        if (end < 0 || zip.getInt(end) != END_RECORD) {
            throw new BuildProblem(apk + " is not a zip file");
        }
        int at = zip.getInt(end + 16);
        for (int left = zip.getShort(end + 10) & 0xffff; left > 0; left--) {
            int nameBytes = zip.getShort(at + 28) & 0xffff;
            String name = new String(zip.array(), at + ENTRY_BYTES, nameBytes, StandardCharsets.UTF_8);
            boolean isStored = zip.getShort(at + 10) == 0;
            int alignment = name.startsWith("lib/") && name.endsWith(".so") ? PAGE : WORD;
            int start = contentStart(zip, zip.getInt(at + 42));
            if (!isStored || start % alignment != 0) {
                throw new BuildProblem(apk + ": " + name + (isStored ? " begins at " + start : " is compressed"));
            }
            at += ENTRY_BYTES + nameBytes + (zip.getShort(at + 30) & 0xffff) + (zip.getShort(at + 32) & 0xffff);
        }
    }

    private static int contentStart(ByteBuffer zip, int header) {
        return header + LOCAL_BYTES + (zip.getShort(header + 26) & 0xffff) + (zip.getShort(header + 28) & 0xffff);
    }
}
