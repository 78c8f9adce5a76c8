package org.edgefl.apk;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/** The commands that {@code app/pom.xml} runs, in their order, and {@code verify} for any APK. */
public final class Main {
    private Main() {}

    /** Run a command. Errors are thrown, because Maven calls this in its own process. */
    public static void main(String[] arguments) throws IOException {
        List<String> all = Arrays.asList(arguments);
        Options options = new Options(all.subList(Math.min(1, all.size()), all.size()));
        switch (all.isEmpty() ? "" : all.get(0)) {
            case "resources" -> resources(options);
            case "guards" -> ApiGuards.check(options.path("classes"), options.text("annotation"));
            case "tests" -> tests(options);
            case "package" -> new Packager(Pins.read(options.path("pins")), options).write(options.path("apk"));
            case "verify" -> System.out.print(ApkSignature.verify(options.path("apk"), options.number("min-sdk")));
            default -> throw new BuildProblem("commands: resources, guards, tests, package, verify");
        }
    }

    private static void resources(Options options) throws IOException {
        Pins pins = Pins.read(options.path("pins"));
        Path platform = pins.check(options.path("platform"));
        AppResources resources = AppResources.of(options.path("module"));
        Aapt2 aapt2 = Aapt2.unpack(new Tools(pins).jar(Tools.AAPT2), resources.output().resolve("tools"));
        resources.compile(aapt2, platform, options);
    }

    /** Check what tests run on, and unpack the classes of Android libraries among it. */
    private static void tests(Options options) throws IOException {
        Pins pins = Pins.read(options.path("pins"));
        try (DirectoryStream<Path> files = Files.newDirectoryStream(options.path("folder"), "*[!s].?ar")) {
            for (Path file : files) {
                pins.check(file);
                if (file.toString().endsWith(".aar")) {
                    AndroidArchive.unpackClasses(file, Path.of(file.toString().replace(".aar", "-classes.jar")));
                }
            }
        }
    }
}
