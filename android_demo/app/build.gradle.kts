plugins {
    id("com.android.application")
}

android {
    namespace = "org.edgefl.app"
    compileSdk = 35

    defaultConfig {
        applicationId = "org.edgefl.app"
        minSdk = 26
        targetSdk = 35
        versionCode = 1
        versionName = "0.1.0"
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }

    // The core is compiled with the app, against the engine's Android library.
    sourceSets["main"].java.srcDir("../core/src/main/java")

    testOptions.unitTests.isIncludeAndroidResources = true
}

dependencies {
    implementation("com.microsoft.onnxruntime:onnxruntime-android:1.29.0")
    testImplementation("junit:junit:4.13.2")
    testImplementation("org.robolectric:robolectric:4.17")
}
