/** Runs training and inference graphs. {@link org.edgefl.engine.Engine} is the seam; onnxruntime is behind it. */
package org.edgefl.engine;
