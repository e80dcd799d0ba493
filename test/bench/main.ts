/**
 * `make bench` compares gwproxy with the peers that can be installed, in one run. The figure is CPU-microseconds of the
 * process tree per request, as the median of interleaved rounds. On a shared machine it is more stable than throughput;
 * figures of different runs cannot be compared.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { admissionTable } from "./admission.ts";
import { churn, churnTables, type ChurnForm, type ChurnSizes } from "./churn.ts";
import { startCluster, startFiles } from "./churn-forms.ts";
import { enter, measureStarts, reasonOf, type Contender } from "./contenders.ts";
import { credentialTable } from "./credentials.ts";
import { expressionTables } from "./expressions.ts";
import { goalTable } from "./goals.ts";
import { llmTable } from "./llm.ts";
import { buildTools, load, type Asked, type Load, type LoadOptions, type Tools } from "./load.ts";
import {
  buildPackage,
  DIRECT,
  LARGE_MOCK_PORT,
  MOCK_PORT,
  OTHER_MOCK_PORT,
  PEERS,
  PICKER_PORT,
  VARIANTS,
} from "./peers.ts";
import type { Peer } from "./peers.ts";
import { policyTable } from "./policies.ts";
import { startPicker } from "../support/servers/picker.ts";
import { start, type Running } from "./process.ts";
import { figure } from "./report.ts";
import { measureSessions, sessionTable } from "./mcp-sessions.ts";
import { measureStreams, streamTable } from "./streams.ts";
import { reportTable } from "./reports.ts";
import { measureScale, scaleTable } from "./scale.ts";
import { emptyResults, keyOf, loadTables, type Results } from "./results.ts";
import { ROWS, SPECIAL_ROWS, type Row } from "./rows.ts";

const USAGE = `usage: node --import tsx test/bench/main.ts [--only row,row] [--peers name,name] [--seconds 2] [--rounds 3]
  [--routes 5000,40000]  sizes of the row "scale"
rows: ${[...ROWS.map(({ name }) => name), ...SPECIAL_ROWS].join(", ")}
peers: ${PEERS.map(({ name }) => name).join(", ")}
`;

interface Options {
  readonly rows: readonly Row[];
  readonly special: ReadonlySet<string>;
  readonly peers: readonly Peer[];
  readonly seconds: number;
  readonly rounds: number;
  /** Numbers of routes for the row "scale". */
  readonly routes: readonly number[];
}

const CHURN: ChurnSizes = { routes: 3_000, most: 5_000, editSeconds: 60, singles: 200, rounds: 10 };
const LATENCY = { rate: 20, connections: 16, warmSeconds: 0.5 } as const;
const PICKED: readonly string[] = ["chat-processed", "chat-picked"];
const FULL = { connections: 16, warmSeconds: 0.5 } as const;

/** Measurements that run in this process, by the name of the row. */
const TABLES: Readonly<Record<string, () => string | Promise<string>>> = {
  expressions: expressionTables,
  policies: policyTable,
  credentials: credentialTable,
  reports: reportTable,
  llm: llmTable,
  admission: admissionTable,
};

async function main(): Promise<void> {
  const options = readOptions();
  let inProcess = 0;
  for (const [name, table] of Object.entries(TABLES)) {
    if (!options.special.has(name)) continue;
    inProcess += 1;
    process.stdout.write(`${await table()}\n`);
  }
  if (options.rows.length === 0 && options.special.size === inProcess) return;
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-bench-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const results = emptyResults();
  const mocks: Pick<Running, "stop">[] = [];
  try {
    const tools = await buildTools();
    for (const port of [MOCK_PORT, OTHER_MOCK_PORT]) mocks.push(await startMock(tools, port));
    mocks.push(await startMock(tools, LARGE_MOCK_PORT, ["-size", String(1024 * 1024)]));
    if (options.rows.some(({ name }) => PICKED.includes(name))) mocks.push(await startPickerMock());
    await compare(options, tools, folder, results);
    if (options.special.has("streams")) results.streams.push(...(await measureStreams(tools, folder)));
    if (options.special.has("mcp-sessions")) results.sessions.push(await measureSessions(tools, folder));
    await measureChurn(options, tools, folder, results);
    if (options.special.has("scale"))
      results.scaled.push(...(await measureScale(await buildPackage(), options.routes)));
    report(options, results);
  } finally {
    for (const mock of mocks) await mock.stop();
  }
}

/**
 * Starts the external processor, which is the endpoint picker as well and always picks the one model server. It runs in
 * this process, so its time is not counted.
 */
async function startPickerMock(): Promise<Pick<Running, "stop">> {
  const ends: (() => unknown)[] = [];
  const after = (end: () => unknown): void => void ends.push(end);
  await startPicker({ after }, () => ({ to: `127.0.0.1:${MOCK_PORT}` }), { port: PICKER_PORT });
  return {
    async stop() {
      for (const end of ends) await end();
    },
  };
}

function startMock({ mock }: Tools, port: number, more: readonly string[] = []): Promise<Running> {
  const address = `127.0.0.1:${port}`;
  return start({ file: mock, args: ["-addr", address, ...more] }, new URL(`http://${address}/`), 5_000);
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      peers: { type: "string" },
      seconds: { type: "string", default: "2" },
      rounds: { type: "string", default: "3" },
      routes: { type: "string", default: "5000" },
      help: { type: "boolean", default: false },
    },
  });
  const names = list(values.only, [...ROWS.map(({ name }) => name), ...SPECIAL_ROWS]);
  const peers = list(
    values.peers,
    PEERS.map(({ name }) => name),
  );
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
  const routes = values.routes.split(",").map(Number);
  if (
    values.help ||
    names === undefined ||
    peers === undefined ||
    !(seconds > 0) ||
    ![rounds, ...routes].every((count) => Number.isInteger(count) && count > 0)
  ) {
    process.stderr.write(USAGE);
    process.exit(values.help ? 0 : 2);
  }
  return {
    rows: ROWS.filter(({ name }) => names.has(name)),
    special: new Set(SPECIAL_ROWS.filter((name) => names.has(name))),
    peers: PEERS.filter(({ name }) => peers.has(name)),
    seconds,
    rounds,
    routes,
  };
}

/** @returns undefined when a name is unknown */
function list(text: string | undefined, all: readonly string[]): ReadonlySet<string> | undefined {
  const names = text?.split(",") ?? all;
  return names.every((name) => all.includes(name)) ? new Set(names) : undefined;
}

/** Runs all rounds of all rows with all peers. */
async function compare(options: Options, tools: Tools, folder: string, results: Results): Promise<void> {
  if (options.rows.length === 0 && !options.special.has("startup")) return;
  const contenders: Contender[] = [];
  const variants = VARIANTS.filter(
    ({ column, targets }) =>
      options.peers.some(({ name }) => name === column) && options.rows.some(({ name }) => targets[name] !== undefined),
  );
  try {
    for (const peer of [...options.peers, ...variants]) {
      const entered = await enter(peer, join(folder, peer.name));
      if (typeof entered === "string") results.missing.set(peer.name, entered);
      else contenders.push(entered);
    }
    const columns = contenders.filter(({ peer }) => peer.column === undefined);
    if (options.special.has("startup")) await measureStarts(columns, options.rounds - 1);
    for (let round = 1; round <= options.rounds; round += 1) {
      process.stderr.write(`round ${round}\n`);
      await runRound(options, tools, contenders, results);
    }
    for (const { peer, startMs, idleMiB, peakMiB } of contenders) {
      if (options.special.has("startup")) results.startMs.set(peer.name, startMs);
      if (options.special.has("startup")) results.idleMiB.set(peer.name, idleMiB);
      if (peakMiB > 0) results.peakMiB.set(peer.name, peakMiB);
    }
  } finally {
    for (const { running } of contenders) await running.stop();
  }
}

async function runRound(
  { rows, seconds }: Options,
  { loadgen }: Tools,
  contenders: readonly Contender[],
  results: Results,
): Promise<void> {
  const measure = async (row: Row, asked: Asked, column: string, options: LoadOptions): Promise<Load> => {
    const result = await load(loadgen, asked, row, options);
    const key = keyOf(row.name, column);
    results.loads.set(key, [...(results.loads.get(key) ?? []), result]);
    return result;
  };
  for (const row of rows) {
    const full = row.measure === "processor";
    const base = { ...(full ? FULL : LATENCY), seconds };
    if (!full) await measure(row, DIRECT, DIRECT.name, base);
    for (const contender of contenders) {
      const { peer, running } = contender;
      if (peer.targets[row.name] === undefined) continue;
      const result = await measure(row, peer, peer.column ?? peer.name, { ...base, pid: running.pid });
      contender.peakMiB = Math.max(contender.peakMiB, result.rss_mb ?? 0);
      process.stderr.write(
        `  ${row.name.padEnd(17)} ${peer.name.padEnd(11)} ${figure(result.cpu_us_per_req).padStart(7)} µs` +
          `  ${result.rps.toFixed(0).padStart(6)}/s${errorsOf(result)}\n`,
      );
    }
  }
}

function errorsOf({ bad, ioerr, first_error }: Load): string {
  return bad + ioerr === 0 ? "" : `  ${bad + ioerr} failed: ${first_error ?? ""}`;
}

async function measureChurn({ special, peers }: Options, { loadgen }: Tools, folder: string, results: Results) {
  const own = peers.find(({ name }) => name === "gwproxy");
  if (own === undefined) return;
  const forms: [string, (main: string) => Promise<ChurnForm>][] = [
    ["churn", (main) => startFiles(main, folder)],
    ["churn-cluster", startCluster],
  ];
  for (const [name, startForm] of forms) {
    if (!special.has(name)) continue;
    try {
      const form = await startForm(await buildPackage());
      try {
        results.churned.push(await churn(form, CHURN, loadgen));
      } finally {
        await form.stop();
      }
    } catch (error) {
      // Keep the figures of the other rows; report this one as missing and the run as failed.
      results.missing.set(name, `has no figures: ${reasonOf(error)}`);
      process.exitCode = 1;
    }
  }
}

function report(options: Options, results: Results): void {
  const { rows, rounds, seconds } = options;
  const columns = options.peers.map(({ name }) => name).filter((name) => !results.missing.has(name));
  process.stdout.write(`\n${loadTables(results, rows, columns, rounds)}`);
  if (results.churned.length > 0) process.stdout.write(`\n${churnTables(results.churned)}`);
  if (results.scaled.length > 0) process.stdout.write(`\n${scaleTable(results.scaled)}`);
  if (results.streams.length > 0) process.stdout.write(`\n${streamTable(results.streams)}`);
  for (const figures of results.sessions) process.stdout.write(`\n${sessionTable(figures)}`);
  process.stdout.write(`\n${goalTable(results)}`);
  for (const [name, reason] of results.missing) process.stdout.write(`${name} ${reason}\n`);
  // A run without gwproxy is of no use.
  if (results.missing.has("gwproxy")) process.exitCode = 1;
  const folder = join(import.meta.dirname, "../../.tmp/bench");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${new Date().toISOString().replaceAll(":", "-")}.json`);
  const plain = Object.fromEntries(
    Object.entries(results).map(([name, value]) => [name, value instanceof Map ? Object.fromEntries(value) : value]),
  );
  writeFileSync(file, `${JSON.stringify({ node: process.version, seconds, rounds, ...plain }, null, 2)}\n`);
  process.stdout.write(`results: ${file}\n`);
}

await main();
