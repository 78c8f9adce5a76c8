package org.edgefl.apk;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.jar.JarFile;
import java.util.zip.ZipEntry;

/** Google's resource compiler, as a program of its own: the static builds that apktool brings. */
final class Aapt2 {
    private final Path program;

    private Aapt2(Path program) {
        this.program = program;
    }

    /** Take the program for this machine out of apktool's jar, into a folder. */
    static Aapt2 unpack(Path jar, Path folder) throws IOException {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String name = system.contains("win") && !system.contains("darwin") ? "windows/aapt2.exe"
                : system.contains("mac") || system.contains("darwin") ? "macosx/aapt2" : "linux/aapt2";
        Path program = folder.resolve(name.substring(name.indexOf('/') + 1));
        Files.createDirectories(folder);
        try (JarFile archive = new JarFile(jar.toFile())) {
            ZipEntry entry = archive.getEntry("prebuilt/" + name);
            if (entry == null) {
                throw new BuildProblem(jar.getFileName() + " has no aapt2 for " + system);
            }
            try (InputStream in = archive.getInputStream(entry); OutputStream out = Files.newOutputStream(program)) {
                in.transferTo(out);
            }
        }
        if (!program.toFile().setExecutable(true)) {
            throw new BuildProblem(program + " cannot be made executable: is its file system mounted noexec?");
        }
        return new Aapt2(program);
    }

    /** Run it and return what it printed; anything but success is an error. */
    String run(List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(program.toString());
        command.addAll(arguments);
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        process.getOutputStream().close();
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        try {
            if (process.waitFor() != 0) {
                throw new BuildProblem("aapt2 " + arguments.get(0) + " failed:\n" + said.strip());
            }
        } catch (InterruptedException e) {
            process.destroy();
            Thread.currentThread().interrupt();
            throw new BuildProblem("interrupted while aapt2 ran", e);
        }
        return said;
    }
}
