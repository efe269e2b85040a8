/** Records, pages, segments and timelines of the write-ahead log. */
package org.pgkernel.wal;
