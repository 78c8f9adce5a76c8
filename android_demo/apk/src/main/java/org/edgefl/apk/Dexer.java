package org.edgefl.apk;

import com.android.tools.r8.ClassFileResourceProvider;
import com.android.tools.r8.CompilationFailedException;
import com.android.tools.r8.CompilationMode;
import com.android.tools.r8.D8;
import com.android.tools.r8.D8Command;
import com.android.tools.r8.Diagnostic;
import com.android.tools.r8.DiagnosticsHandler;
import com.android.tools.r8.JdkClassFileProvider;
import com.android.tools.r8.OutputMode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** Java classes as phones run them: D8 rewrites what Java 17 has and Android 26 has not, such as records. */
final class Dexer implements DiagnosticsHandler {
    private final List<String> said = new ArrayList<>();

    private Dexer() {}

    /**
     * Write {@code classes.dex}, and more if they are needed, into a folder.
     *
     * @param program what goes into the app: jars, and folders of classes
     * @param references what the program refers to but does not bring
     */
    static void write(List<Path> program, List<Path> references, Path platform, int minSdk, Path folder)
            throws IOException {
        Dexer dexer = new Dexer();
        try {
            D8Command.Builder command = D8Command.builder(dexer)
                    .addLibraryFiles(platform)
                    .addLibraryResourceProvider(javaClasses())
                    .addClasspathFiles(references)
                    .setMinApiLevel(minSdk)
                    .setMode(CompilationMode.RELEASE)
                    .setOutput(folder, OutputMode.DexIndexed);
            for (Path part : program) {
                command.addProgramFiles(classFiles(part));
            }
            D8.run(command.build());
        } catch (CompilationFailedException e) {
            throw new BuildProblem("D8 failed:\n" + String.join("\n", dexer.said), e);
        }
        if (!dexer.said.isEmpty()) {
            throw new BuildProblem("D8 warns:\n" + String.join("\n", dexer.said));
        }
    }

    /** The platform's jar leaves {@code java.lang.Object} and the like to the Java that runs it; so is it here. */
    private static ClassFileResourceProvider javaClasses() throws IOException {
        return JdkClassFileProvider.fromSystemModulesJdk(Path.of(System.getProperty("java.home")));
    }

    private static List<Path> classFiles(Path part) throws IOException {
        if (!Files.isDirectory(part)) {
            return List.of(part);
        }
        try (Stream<Path> files = Files.walk(part)) {
            return files.filter(file -> file.toString().endsWith(".class"))
                    .filter(file -> !file.endsWith("package-info.class"))
                    .sorted()
                    .toList();
        }
    }

    @Override
    public void error(Diagnostic diagnostic) {
        warning(diagnostic);
    }

    @Override
    public void warning(Diagnostic diagnostic) {
        said.add(diagnostic.getOrigin() + ": " + diagnostic.getDiagnosticMessage());
    }

    @Override
    public void info(Diagnostic diagnostic) {
        // Only D8's developers have a use for it.
    }
}
