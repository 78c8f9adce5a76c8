/** Files that are whole or not there, and that only their owner can read. */
package org.edgefl.files;
