/**
 * JMH benchmarks; each is to be run with {@code -prof gc} as well, since hot paths must not
 * allocate.
 */
package org.pgkernel.benchmarks;
