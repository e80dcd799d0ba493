/** Sends requests through the data plane without a socket, and measures their processor time. */
import { HeaderList } from "../../src/lib/header-list.ts";
import { Peer } from "../../src/proxy/listeners/peer.ts";
import type { Reply } from "../../src/proxy/exchange/exchange.ts";
import { HttpExchange } from "../../src/proxy/pipeline/http-exchange.ts";
import { median } from "./report.ts";

export const PLAIN: readonly string[] = HeaderList.of({
  host: "api.example.com",
  accept: "*/*",
  "user-agent": "bench",
  "x-forwarded-for": "10.1.2.3",
  "x-request-id": "3b241101-e2bb-4255-8caf-4136c566a962",
}).raw;
const BATCHES = 9;
const BATCH_MS = 40;

const PEER = new Peer(
  {
    address: "10.1.2.3",
    port: 4711,
    rawAddress: "10.1.2.3",
    rawPort: 4711,
    localAddress: "10.9.9.9",
    localPort: 80,
    serverName: undefined,
    certificate: undefined,
    connectHeaders: undefined,
  },
  { podName: "gw-0", namespace: "default", gateway: "gw" },
  false,
);

export function exchangeOf(
  headers: readonly string[],
  method: string,
  { target = "/v1/things?x=1", body = null }: { readonly target?: string; readonly body?: Buffer | null } = {},
): HttpExchange {
  return new HttpExchange({
    method,
    target,
    host: "api.example.com",
    scheme: "http",
    version: "HTTP/1.1",
    headers: new HeaderList(headers.slice()),
    body,
    contentLength: body?.length ?? 0,
    connect: false,
    takenForProxy: false,
    requestId: "bench",
    upgrade: undefined,
    source: PEER,
    bind: "80/default/gw",
    serverName: undefined,
    proxyAuthorization: undefined,
    cdnLoop: undefined,
  });
}

export function answer(): Reply {
  return { status: 200, headers: new HeaderList(["content-type", "text/plain"]), body: null, upstream: true };
}

/** Requests per event-loop turn. Work that a request defers runs between turns and is measured as well. */
const TURN = 256;

type Work = () => void | Promise<void>;

/** Returns the processor time of one run: the median of batches, because garbage collection disturbs few of them. */
export async function microseconds(work: Work): Promise<number> {
  let times = TURN;
  while ((await batch(work, times)) < BATCH_MS) times *= 2;
  const figures: number[] = [];
  while (figures.length < BATCHES) figures.push(((await batch(work, times)) * 1000) / times);
  return median(figures) ?? 0;
}

/** Returns milliseconds of this thread's processor time, which does not depend on the load of the machine. */
async function batch(work: Work, times: number): Promise<number> {
  const before = process.threadCpuUsage();
  for (let done = 0; done < times; done += TURN) {
    for (let at = 0; at < TURN; at++) {
      const waiting = work();
      if (waiting !== undefined) await waiting;
    }
    await new Promise(setImmediate);
  }
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
