package org.edgefl.app;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks code that calls what only later versions of Android have.
 *
 * <p>The build fails if code without this mark calls anything that Android 26 does not have, and if marked code is used
 * by a method that neither compares {@code Build.VERSION.SDK_INT} with the number of the mark or a later one, nor is
 * marked itself. Lambdas are methods of their own, which cannot be marked: mark the class that has them.
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target({ElementType.TYPE, ElementType.METHOD, ElementType.CONSTRUCTOR})
public @interface RequiresApi {
    /** The first API level that has what the code calls. */
    int value();
}
