package org.edgefl.apk;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Puts the APK together: compiled resources, the program as dex files, the engine if there is one, a signature. */
final class Packager {
    private final Pins pins;
    private final Options options;
    private final Path work;

    Packager(Pins pins, Options options) {
        this.pins = pins;
        this.options = options;
        this.work = AppResources.of(options.path("module")).output();
    }

    /** Write the signed APK and verify it. */
    void write(Path apk) throws IOException {
        Tools tools = new Tools(pins);
        tools.jar(Tools.D8);
        tools.jar(Tools.APKSIG);
        Path platform = pins.check(options.path("platform"));
        int minSdk = options.number("min-sdk");
        String wanted = options.text("engine");
        EngineArchive engine = wanted.equals("none") ? null : EngineArchive.open(Path.of(wanted), pins);
        SigningKey key = SigningKey.read(System.getenv(), options.path("debug-key"));

        ApkContents contents = new ApkContents();
        contents.addArchive(work.resolve(AppResources.ARCHIVE), "", "");
        addProgram(contents, engine, platform, minSdk);
        addEngine(contents, engine);
        Path unsigned = work.resolve("unsigned.apk");
        contents.write(unsigned);
        ApkSignature.sign(unsigned, apk, key, minSdk);
        ApkSignature.verify(apk, minSdk);
        report(apk, engine, key);
    }

    private void addProgram(ApkContents contents, EngineArchive engine, Path platform, int minSdk) throws IOException {
        List<Path> program = new ArrayList<>(options.paths("classes"));
        List<Path> references = new ArrayList<>();
        if (engine != null) {
            program.add(engine.classes(work));
        } else {
            references.add(pins.check(options.path("engine-api")));
        }
        Path folder = work.resolve("dex");
        Files.createDirectories(folder);
        try (DirectoryStream<Path> old = Files.newDirectoryStream(folder)) {
            for (Path file : old) {
                Files.delete(file);
            }
        }
        Dexer.write(program, references, platform, minSdk, folder);
        try (DirectoryStream<Path> written = Files.newDirectoryStream(folder, "*.dex")) {
            for (Path file : written) {
                contents.add(file.getFileName().toString(), Files.readAllBytes(file));
            }
        }
    }

    private void addEngine(ApkContents contents, EngineArchive engine) throws IOException {
        String text = "none\n";
        if (engine != null) {
            engine.addLibraries(contents);
            text = engine.file().getFileName() + "\nsha256:" + engine.digest() + "\n";
        }
        contents.add("assets/engine.txt", text.getBytes(StandardCharsets.US_ASCII));
    }

    private static void report(Path apk, EngineArchive engine, SigningKey key) throws IOException {
        List<String> lines = new ArrayList<>();
        lines.add(apk.getFileName() + ": " + Files.size(apk) + " bytes");
        lines.add("SHA-256 " + Pins.sha256(apk));
        lines.add(key.isPublic()
                ? "Signed with the debug key, which is public: do not hand it out."
                : "Signed by " + key.certificate().getSubjectX500Principal());
        if (engine == null) {
            lines.add("THERE IS NO ENGINE IN THIS APK: IT CANNOT TRAIN.");
            lines.add("It lacks com.microsoft.onnxruntime:onnxruntime-android, which");
            lines.add("`make android` takes from Maven Central where it can be had.");
        } else {
            lines.add("Engine " + engine.file().getFileName() + " for " + String.join(", ", engine.abis()));
            lines.add("SHA-256 " + engine.digest());
            engine.narrow().forEach(name -> lines.add("NOT FOR PHONES WITH PAGES OF 16 KB: " + name));
        }
        Box.print(lines);
    }
}
