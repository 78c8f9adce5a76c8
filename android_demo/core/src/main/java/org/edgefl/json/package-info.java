/** Reads and writes JSON: strict and bounded, because the coordinator may be hostile. */
package org.edgefl.json;
