package org.edgefl.apk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.xml.XMLConstants;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import javax.xml.transform.TransformerException;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.dom.DOMSource;
import javax.xml.transform.stream.StreamResult;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.xml.sax.SAXException;

/**
 * The app's manifest and resources, compiled: an archive without code, and the class {@code R}.
 *
 * <p>The manifest in the sources has no package, no versions and no SDK numbers, as Android Studio wants it; here they
 * come from the pom, there from {@code build.gradle.kts}.
 */
record AppResources(Path manifest, Path resources, Path output, Path generatedSources) {
    static final String ARCHIVE = "resources.apk";
    private static final String ANDROID = "http://schemas.android.com/apk/res/android";

    /** Where things are in a module. */
    static AppResources of(Path module) {
        Path target = module.resolve("target");
        return new AppResources(module.resolve("src/main/AndroidManifest.xml"), module.resolve("src/main/res"),
                target.resolve("android"), target.resolve("generated-sources/r"));
    }

    /** Compile everything; return the archive. */
    Path compile(Aapt2 aapt2, Path platform, Options options) throws IOException {
        Files.createDirectories(output);
        Files.createDirectories(generatedSources);
        Path whole = output.resolve("AndroidManifest.xml");
        writeManifest(whole, options.text("package"));
        Path compiled = output.resolve("compiled-resources.zip");
        aapt2.run(List.of("compile", "--dir", resources.toString(), "-o", compiled.toString()));
        Path archive = output.resolve(ARCHIVE);
        aapt2.run(List.of("link", "-o", archive.toString(), "-I", platform.toString(), "--manifest", whole.toString(),
                "--java", generatedSources.toString(), "--min-sdk-version", options.text("min-sdk"),
                "--target-sdk-version", options.text("target-sdk"), "--version-code", options.text("version-code"),
                "--version-name", options.text("version-name"), "--warn-manifest-validation",
                compiled.toString()));
        return archive;
    }

    private void writeManifest(Path whole, String name) throws IOException {
        try {
            DocumentBuilderFactory reading = DocumentBuilderFactory.newInstance();
            reading.setFeature(XMLConstants.FEATURE_SECURE_PROCESSING, true);
            reading.setNamespaceAware(true);
            Document document = reading.newDocumentBuilder().parse(manifest.toFile());
            Element root = document.getDocumentElement();
            root.setAttribute("package", name);
            Element application = (Element) root.getElementsByTagName("application").item(0);
            application.setAttributeNS(ANDROID, "android:extractNativeLibs", "false"); // they are mapped from the APK
            TransformerFactory.newInstance().newTransformer()
                    .transform(new DOMSource(document), new StreamResult(whole.toFile()));
        } catch (ParserConfigurationException | SAXException | TransformerException e) {
            throw new BuildProblem(manifest + " cannot be read: " + e.getMessage(), e);
        }
    }
}
