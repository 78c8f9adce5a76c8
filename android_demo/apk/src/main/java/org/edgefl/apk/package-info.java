/**
 * Builds the app's APK: resources, dex files, the engine's libraries, alignment and signature.
 *
 * <p>Maven runs it twice in the module {@code app}: before the sources are compiled, because they need the class
 * {@code R}, and after their tests. It needs neither Gradle nor the Android SDK. Whatever it uses is checked against
 * {@code pins.sha256} before.
 */
package org.edgefl.apk;
