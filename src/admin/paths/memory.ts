/** `/memory`: memory of this process as reported by Node. */
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";
import { json } from "../http.ts";
import type { AdminPath } from "./admin-path.ts";

export const memory: AdminPath<unknown> = {
  help: "memory of this process, as JSON",
  get: () => json(readMemory()),
};

function readMemory(): unknown {
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage();
  const heapSpaces = getHeapSpaceStatistics().map((space) => ({
    name: space.space_name,
    size: space.space_size,
    used: space.space_used_size,
    available: space.space_available_size,
  }));
  const limits = { cgroupBytes: process.constrainedMemory(), heapBytes: getHeapStatistics().heap_size_limit };
  return { process: { rss, heapTotal, heapUsed, external, arrayBuffers }, heapSpaces, limits };
}
