/**
 * How long a change takes from the file to live traffic, and whether anybody notices: a route is rewritten again and
 * again while others are under load. One figure per change: milliseconds from the start of the write to the first
 * answer of the new route.
 */
import { renameSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { load, type Load } from "./load.ts";
import { GWPROXY_PORT, type Peer } from "./peers.ts";
import { ROWS } from "./rows.ts";

export interface Propagation {
  readonly milliseconds: readonly number[];
  readonly load: Load;
}

const CHANGE_LIMIT_MS = 10_000;

/** @param folder the manifests that the proxy watches */
export async function measurePropagation(
  { loadgen, peer, folder }: { loadgen: string; peer: Peer; folder: string },
  changes: number,
): Promise<Propagation> {
  const row = ROWS.find(({ name }) => name === "get");
  if (row === undefined) throw new TypeError("the table of rows has no GET");
  // Few connections: the point is that none of the requests fails, not that the machine is full.
  const seconds = Math.max(2, Math.ceil(changes / 10));
  const background = load(loadgen, peer, row, { seconds, warmSeconds: 0, connections: 2 });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const milliseconds: number[] = [];
  try {
    for (let number = 0; number < changes; number += 1) milliseconds.push(await change(folder, number, agent));
  } finally {
    agent.destroy();
  }
  return { milliseconds, load: await background };
}

async function change(folder: string, number: number, agent: Agent): Promise<number> {
  const began = performance.now();
  const file = join(folder, "changing.yaml");
  writeFileSync(`${file}.new`, routeTo(number));
  renameSync(`${file}.new`, file);
  while ((await statusOf(`/changing/${number}`, agent)) !== 200) {
    if (performance.now() - began > CHANGE_LIMIT_MS) throw new Error(`change ${number} did not reach the traffic`);
  }
  return performance.now() - began;
}

function routeTo(number: number): string {
  return JSON.stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "changing", namespace: "default" },
    spec: {
      parentRefs: [{ name: "bench" }],
      rules: [
        {
          matches: [{ path: { type: "PathPrefix", value: `/changing/${number}` } }],
          backendRefs: [{ group: "gwproxy.dev", kind: "GwBackend", name: "plain" }],
        },
      ],
    },
  });
}

function statusOf(path: string, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port: GWPROXY_PORT, path, agent }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    }).on("error", reject);
  });
}
