/** The disk seam: {@link org.pgkernel.base.disk.Disk}, its files, and the POSIX implementation. */
package org.pgkernel.base.disk;
