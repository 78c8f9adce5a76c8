/** The owner's samples: drawn, imported, counted, deleted. They never leave the phone. Knows no network. */
package org.edgefl.app.samples;
