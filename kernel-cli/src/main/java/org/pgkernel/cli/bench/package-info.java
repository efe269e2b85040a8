/** {@code pgkernel bench}: measurements that need no server and no data. */
package org.pgkernel.cli.bench;
