/** `/debug/pprof/profile` and `/debug/pprof/heap`: profiles of all threads that `go tool pprof` opens. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { getQuery, type H3Event } from "h3";
import type { ProfileRequest } from "../../lib/profiling/capture.ts";
import { printPprof } from "../../lib/profiling/pprof.ts";
import { text } from "../http.ts";
import type { AdminPath, ProfileContext } from "./admin-path.ts";

const DEFAULT_SECONDS = 10;
const MAX_SECONDS = 300;
const DEFAULT_FREQUENCY = 100;
const MAX_FREQUENCY = 1_000;

export const cpuProfile: AdminPath<ProfileContext> = {
  help: "a CPU profile of ?seconds=10 (1 to 300) at ?frequency=100 Hz (1 to 1000), in the format of pprof",
  get: (event, context) => profile("cpu", event, context),
};

export const heapProfile: AdminPath<ProfileContext> = {
  help: "what was allocated during ?seconds=10 (1 to 300) and is still alive, in the format of pprof",
  get: (event, context) => profile("heap", event, context),
};

/** Servers that take a profile; two at once would measure each other. */
const busy = new WeakSet<ProfileContext>();
const compress = promisify(gzip);

async function profile(kind: ProfileRequest["kind"], event: H3Event, context: ProfileContext): Promise<Response> {
  if (busy.has(context)) return text("another profile is being taken; try again when it is ready\n", 409);
  const { seconds, frequency } = getQuery(event);
  const request = {
    kind,
    seconds: within(seconds, MAX_SECONDS, DEFAULT_SECONDS),
    frequency: within(frequency, MAX_FREQUENCY, DEFAULT_FREQUENCY),
  };
  busy.add(context);
  try {
    const startedAtMs = Date.now();
    const bytes = await compress(printPprof(await context.profile(request, event.req.signal), request, startedAtMs));
    const headers = {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${kind}.pb.gz"`,
    };
    return new Response(new Uint8Array(bytes), { headers });
  } finally {
    busy.delete(context);
  }
}

/** Returns the default for what is no number from 1 to the largest. */
function within(value: unknown, largest: number, otherwise: number): number {
  const number = typeof value === "string" && /^\d{1,5}$/.test(value) ? Number(value) : 0;
  return number >= 1 && number <= largest ? number : otherwise;
}
