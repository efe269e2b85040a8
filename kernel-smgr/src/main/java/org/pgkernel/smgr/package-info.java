/** The storage manager: relation forks as segment files. */
package org.pgkernel.smgr;
