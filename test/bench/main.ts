/**
 * `make bench`: gwproxy and the peers that can be installed, side by side in one run. The figure is CPU-microseconds of
 * the process tree per request, the median of interleaved rounds: on a shared machine it is steadier than throughput,
 * and only figures of one run compare.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { admissionTable } from "./admission.ts";
import { expressionTables } from "./expressions.ts";
import { buildTools, load, type Load, type Tools } from "./load.ts";
import { MOCK_PORT, PEERS, type Peer } from "./peers.ts";
import { policyTable } from "./policies.ts";
import { start, type Command, type Running } from "./process.ts";
import { measureCluster } from "./cluster.ts";
import { measureFiles, propagationTable, type Propagation } from "./propagation.ts";
import { figure, median, printTable } from "./report.ts";
import { ROWS, SPECIAL_ROWS, type Row } from "./rows.ts";

const USAGE = `usage: node --import tsx test/bench/main.ts [--only row,row] [--peers name,name] [--seconds 3] [--rounds 3]
rows: ${[...ROWS.map(({ name }) => name), ...SPECIAL_ROWS].join(", ")}
peers: ${PEERS.map(({ name }) => name).join(", ")}
`;

interface Options {
  readonly rows: readonly Row[];
  readonly special: ReadonlySet<string>;
  readonly peers: readonly Peer[];
  readonly seconds: number;
  readonly rounds: number;
}

interface Contender {
  readonly peer: Peer;
  readonly command: Command;
  readonly folder: string;
  running: Running;
  readonly startMs: number[];
  readonly idleMiB: number[];
  peakMiB: number;
}

interface Results {
  readonly loads: Map<string, Load[]>;
  readonly missing: Map<string, string>;
  readonly propagation: Propagation[];
}

const IDLE_MS = 1_000;
const ROUTE_CHANGES = 200;

async function main(): Promise<void> {
  const options = readOptions();
  if (options.special.has("expressions")) process.stdout.write(`${expressionTables()}\n`);
  if (options.special.has("policies")) process.stdout.write(`${await policyTable()}\n`);
  if (options.special.has("admission")) process.stdout.write(`${await admissionTable()}\n`);
  const inProcess = ["expressions", "policies", "admission"].filter((name) => options.special.has(name)).length;
  if (options.rows.length === 0 && options.special.size === inProcess) return;
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-bench-"));
  const contenders: Contender[] = [];
  const results: Results = { loads: new Map(), missing: new Map(), propagation: [] };
  let mock: Running | undefined;
  try {
    const tools = await buildTools();
    const mockAddress = `127.0.0.1:${MOCK_PORT}`;
    mock = await start({ file: tools.mock, args: ["-addr", mockAddress] }, new URL(`http://${mockAddress}/`), 5_000);
    for (const peer of options.peers) {
      const entered = await enter(peer, join(folder, peer.name));
      if (typeof entered === "string") results.missing.set(peer.name, entered);
      else contenders.push(entered);
    }
    if (options.special.has("startup")) await measureStarts(contenders, options.rounds - 1);
    for (let round = 1; round <= options.rounds; round += 1) {
      process.stderr.write(`round ${round}\n`);
      await runRound(options, tools, contenders, results);
    }
    const own = contenders.find(({ peer }) => peer.name === "gwproxy");
    if (own !== undefined) await measureChanges(options, tools, own, results);
    report(options, contenders, results);
    // A run without the product measured nothing that matters.
    if (results.missing.has("gwproxy")) process.exitCode = 1;
  } finally {
    for (const { running } of contenders) await running.stop();
    await mock?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      peers: { type: "string" },
      seconds: { type: "string", default: "3" },
      rounds: { type: "string", default: "3" },
      help: { type: "boolean", default: false },
    },
  });
  const names = list(values.only, [...ROWS.map(({ name }) => name), ...SPECIAL_ROWS]);
  const peers = list(
    values.peers,
    PEERS.map(({ name }) => name),
  );
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
  if (
    values.help ||
    names === undefined ||
    peers === undefined ||
    !(seconds > 0) ||
    !Number.isInteger(rounds) ||
    rounds < 1
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
  };
}

/** @returns undefined when a name is unknown */
function list(text: string | undefined, all: readonly string[]): ReadonlySet<string> | undefined {
  const names = text?.split(",") ?? all;
  return names.every((name) => all.includes(name)) ? new Set(names) : undefined;
}

/** @returns the reason in words when the peer cannot take part */
async function enter(peer: Peer, folder: string): Promise<Contender | string> {
  mkdirSync(folder);
  let command: Command;
  try {
    command = await peer.prepare(folder);
  } catch (error) {
    return `not installed: ${reasonOf(error)}`;
  }
  try {
    const running = await start(command, probeOf(peer), peer.startLimitMs);
    process.stderr.write(`${peer.name} serves after ${running.startMs.toFixed(0)} ms\n`);
    const contender: Contender = { peer, command, folder, running, startMs: [], idleMiB: [], peakMiB: 0 };
    await weigh(contender);
    return contender;
  } catch (error) {
    return `did not start: ${reasonOf(error)}`;
  }
}

/** The end of it on one line: what a program says last is why it ended. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replaceAll(/\s+/g, " ").slice(-300);
}

function probeOf({ port, probe }: Peer): URL {
  return new URL(`http://127.0.0.1:${port}${probe}`);
}

async function weigh(contender: Contender): Promise<void> {
  contender.startMs.push(contender.running.startMs);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  contender.idleMiB.push(contender.running.residentMiB());
}

async function measureStarts(contenders: readonly Contender[], times: number): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    for (const contender of contenders) {
      await contender.running.stop();
      contender.running = await start(contender.command, probeOf(contender.peer), contender.peer.startLimitMs);
      await weigh(contender);
    }
  }
}

async function runRound(
  { rows, seconds }: Options,
  { loadgen }: Tools,
  contenders: readonly Contender[],
  results: Results,
): Promise<void> {
  for (const row of rows) {
    for (const contender of contenders) {
      const { peer, running } = contender;
      if (peer.targets[row.name] === undefined) continue;
      const result = await load(loadgen, peer, row, { seconds, warmSeconds: 1, connections: 16, pid: running.pid });
      contender.peakMiB = Math.max(contender.peakMiB, result.rss_mb ?? 0);
      const key = `${row.name} ${peer.name}`;
      results.loads.set(key, [...(results.loads.get(key) ?? []), result]);
      process.stderr.write(
        `  ${row.name.padEnd(17)} ${peer.name.padEnd(9)} ${figure(result.cpu_us_per_req).padStart(7)} µs` +
          `  ${result.rps.toFixed(0).padStart(6)}/s${errorsOf(result)}\n`,
      );
    }
  }
}

async function measureChanges(
  { special }: Options,
  { loadgen }: Tools,
  { peer, folder }: Contender,
  { propagation, missing }: Results,
): Promise<void> {
  const config = join(folder, "config");
  if (special.has("propagation")) {
    propagation.push(await measureFiles({ loadgen, peer, folder: config, changes: ROUTE_CHANGES }));
  }
  if (!special.has("propagation-cluster")) return;
  try {
    propagation.push(await measureCluster({ loadgen, peer, folder: config, changes: ROUTE_CHANGES }));
  } catch (error) {
    // The rest of the run has its figures; this one is named as missing, and the run as failed.
    missing.set("propagation-cluster", `has no figures: ${reasonOf(error)}`);
    process.exitCode = 1;
  }
}

function errorsOf({ bad, ioerr, first_error }: Load): string {
  return bad + ioerr === 0 ? "" : `  ${bad + ioerr} failed: ${first_error ?? ""}`;
}

/** A row in which anything failed has no figure: a fast error is no achievement. */
function cell(loads: readonly Load[] | undefined): string {
  if (loads === undefined) return "–";
  if (loads.some(({ ok, bad, ioerr }) => ok === 0 || bad + ioerr > 0)) return "failed";
  return figure(median(loads.map(({ cpu_us_per_req }) => cpu_us_per_req ?? 0)));
}

function report(options: Options, contenders: readonly Contender[], results: Results): void {
  const names = contenders.map(({ peer }) => peer.name);
  const rows = options.rows.map(({ name, title }) => [
    title,
    ...names.map((peer) => cell(results.loads.get(`${name} ${peer}`))),
  ]);
  if (options.special.has("startup")) {
    rows.push(
      ["start to first answer, ms", ...contenders.map(({ startMs }) => figure(median(startMs)))],
      ["memory idle, MiB", ...contenders.map(({ idleMiB }) => figure(median(idleMiB)))],
      ["memory peak, MiB", ...contenders.map(({ peakMiB }) => figure(peakMiB === 0 ? undefined : peakMiB))],
    );
  }
  const head = [`CPU-µs per request, median of ${options.rounds}`, ...names];
  process.stdout.write(`\n${printTable(head, rows)}`);
  for (const [name, reason] of results.missing) process.stdout.write(`${name} ${reason}\n`);
  if (results.propagation.length > 0) process.stdout.write(`\n${propagationTable(results.propagation)}`);
  writeResults(options, contenders, results);
}

function writeResults({ seconds, rounds }: Options, contenders: readonly Contender[], results: Results): void {
  const folder = join(import.meta.dirname, "../../.tmp/bench");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${new Date().toISOString().replaceAll(":", "-")}.json`);
  const peers = contenders.map(({ peer, startMs, idleMiB, peakMiB }) => ({
    name: peer.name,
    startMs,
    idleMiB,
    peakMiB,
  }));
  const { propagation } = results;
  const [loads, missing] = [Object.fromEntries(results.loads), Object.fromEntries(results.missing)];
  writeFileSync(
    file,
    `${JSON.stringify({ node: process.version, seconds, rounds, peers, missing, loads, propagation }, null, 2)}\n`,
  );
  process.stdout.write(`results: ${file}\n`);
}

await main();
