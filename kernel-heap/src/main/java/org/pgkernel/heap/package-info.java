/** Heap pages and the redo of Heap and Heap2. */
package org.pgkernel.heap;
