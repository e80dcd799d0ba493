/** Heap and process figures, all in bytes. */
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

export function memoryReport(): object {
  const heap = getHeapStatistics();
  const { rss, external, arrayBuffers } = process.memoryUsage();
  return {
    rssBytes: rss,
    externalBytes: external,
    arrayBuffersBytes: arrayBuffers,
    heapUsedBytes: heap.used_heap_size,
    heapTotalBytes: heap.total_heap_size,
    heapLimitBytes: heap.heap_size_limit,
    heapSpaces: getHeapSpaceStatistics().map(({ space_name, space_used_size, space_size }) => ({
      name: space_name,
      usedBytes: space_used_size,
      sizeBytes: space_size,
    })),
  };
}
