/**
 * How long a change takes to reach live traffic, and whether anybody notices: one route is changed again and again
 * while another is under a steady load. One figure per change: milliseconds from the write to the first answer of the
 * new route, asked for without a pause on one connection.
 */
import { renameSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { startLoad, type Load } from "./load.ts";
import type { Peer } from "./peers.ts";
import { figure, median, percentile, printTable } from "./report.ts";
import { ROWS } from "./rows.ts";

export interface Propagation {
  readonly form: string;
  readonly milliseconds: readonly number[];
  readonly load: Load;
}

export interface Changes {
  readonly loadgen: string;
  /** Its port is the one that is asked. */
  readonly peer: Peer;
  /** The manifests. */
  readonly folder: string;
  readonly changes: number;
}

const CHANGE_LIMIT_MS = 10_000;
/** Well below what the machine can do: a full machine would measure the wait for a processor. */
const LOAD = { rate: 1_000, connections: 4, warmSeconds: 0 } as const;

/** `gwproxy up`: from the start of the write of a file. */
export function measureFiles(options: Changes): Promise<Propagation> {
  const file = join(options.folder, "changing.yaml");
  return measurePropagation("file", options, (number) => {
    const began = performance.now();
    writeFileSync(`${file}.new`, JSON.stringify(routeTo(number)));
    renameSync(`${file}.new`, file);
    return Promise.resolve(began);
  });
}

/** @param write makes the change; resolves with the moment to count from, by performance.now() */
export async function measurePropagation(
  form: string,
  { loadgen, peer, changes }: Changes,
  write: (number: number) => Promise<number>,
): Promise<Propagation> {
  const row = ROWS.find(({ name }) => name === "get");
  if (row === undefined) throw new TypeError("the table of rows has no GET");
  // Ended when the changes are through, so the time is only a limit.
  const seconds = (changes * CHANGE_LIMIT_MS) / 1_000;
  const background = startLoad(loadgen, peer, row, { ...LOAD, seconds });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const milliseconds: number[] = [];
  try {
    for (let number = 1; number <= changes; number += 1) {
      const began = await write(number);
      milliseconds.push(await untilLive(peer.port, number, { agent, began }));
    }
  } finally {
    agent.destroy();
    background.end();
  }
  return { form, milliseconds, load: await background.result };
}

export function propagationTable(measured: readonly Propagation[]): string {
  const head = ["route change to live traffic, ms", "median", "p99", "worst", "changes", "requests", "failed"];
  const rows = measured.map(({ form, milliseconds, load: { ok, bad, ioerr } }) => [
    form,
    figure(median(milliseconds)),
    figure(percentile(milliseconds, 0.99)),
    figure(percentile(milliseconds, 1)),
    String(milliseconds.length),
    String(ok + bad + ioerr),
    String(bad + ioerr),
  ]);
  return printTable(head, rows);
}

/** The HTTPRoute `changing`, which leads /changing/NUMBER to the upstream. */
export function routeTo(number: number): object {
  return {
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
  };
}

async function untilLive(
  port: number,
  number: number,
  { agent, began }: { readonly agent: Agent; readonly began: number },
): Promise<number> {
  while ((await statusOf(port, `/changing/${number}`, agent)) !== 200) {
    if (performance.now() - began > CHANGE_LIMIT_MS) throw new Error(`change ${number} did not reach the traffic`);
  }
  return performance.now() - began;
}

function statusOf(port: number, path: string, agent: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path, agent }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    }).on("error", reject);
  });
}
