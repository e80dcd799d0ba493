/**
 * Measures churn: creates, edits and deletes thousands of routes while other routes are under a steady load and
 * endpoints flap. The results are the time until a change serves, the failures on the other routes, and the memory that
 * remains. The same phases run against files (`gwproxy up`) and against a real API server (controller and data plane as
 * separate processes).
 */
import { setTimeout as delay } from "node:timers/promises";
import { heapMiB } from "./inspector.ts";
import { startLoad, type Load, type RunningLoad } from "./load.ts";
import { Probe, type Written } from "./probe.ts";
import type { Running } from "./process.ts";
import { figure, median, percentile, printTable } from "./report.ts";
import { ROWS } from "./rows.ts";

/** A gwproxy process whose memory is measured. */
export interface Weighed {
  readonly name: string;
  readonly running: Running;
  readonly inspectorPort: number;
}

/** Writes routes. Each call resolves with the time from which to measure, as performance.now() returns it. */
export interface ChurnForm {
  readonly name: string;
  readonly port: number;
  readonly processes: readonly Weighed[];
  create(route: number): Promise<number>;
  change(route: number, version: number): Promise<number>;
  remove(route: number): Promise<number>;
  /** Changes the endpoints behind /flapping; at least one is always healthy. */
  flap(turn: number): Promise<void>;
  stop(): Promise<void>;
}

export interface ChurnSizes {
  /** Number of routes that are added at a fixed rate. */
  readonly routes: number;
  /** Number of routes that exist while single changes are measured. */
  readonly most: number;
  readonly editSeconds: number;
  readonly singles: number;
  readonly rounds: number;
}

interface Phase {
  readonly title: string;
  readonly milliseconds: readonly number[];
  readonly writes: number;
  /** The phase writes as fast as possible, so its figures tell how far the gateway falls behind. */
  readonly isFlood: boolean;
}

interface Weight {
  readonly process: string;
  readonly round: number;
  readonly heapMiB: number;
  readonly residentMiB: number;
}

export interface Churned {
  readonly form: string;
  readonly phases: readonly Phase[];
  readonly weights: readonly Weight[];
  readonly loads: readonly Load[];
}

const PER_SECOND = 200;
const FLAP_MS = 50;
/** Concurrent writes. */
const IN_FLIGHT = 8;
/** Routes that each round creates and deletes. */
const ROUND_ROUTES = 300;
/** Well below the capacity of the machine; on a saturated machine the figures would show the wait for a processor. */
const LOAD = { rate: 300, connections: 4, warmSeconds: 0, seconds: 3_600 } as const;

export function pathOf(route: number, version: number): string {
  return `/churn/${route}/${version}`;
}

export async function churn(form: ChurnForm, sizes: ChurnSizes, loadgen: string): Promise<Churned> {
  const loads = ["/plain", "/flapping"].map((path) => startSteady(loadgen, form, path));
  const flapping = startFlapping(form);
  const probe = new Probe(form.port);
  const run = new Run(form, probe);
  try {
    const phases: Phase[] = [];
    const weights: Weight[] = [];
    for (const phase of run.phases(sizes)) {
      process.stderr.write(`  ${form.name}: ${phase.title}\n`);
      phases.push(await phase.work());
    }
    for (let round = 0; round <= sizes.rounds; round += 1) {
      if (round > 0) await run.createAndDelete(sizes.most);
      weights.push(...(await weigh(form, round)));
    }
    await flapping.stop();
    for (const load of loads) load.end();
    const done = await Promise.all(loads.map(({ result }) => result));
    return { form: form.name, phases, weights, loads: done };
  } finally {
    await flapping.stop();
    for (const load of loads) load.end();
    probe.close();
  }
}

type Measured = Pick<Phase, "milliseconds" | "writes">;

interface NamedPhase {
  readonly title: string;
  readonly work: () => Promise<Phase>;
}

class Run {
  readonly #form: ChurnForm;
  readonly #probe: Probe;
  readonly #versions: number[] = [];

  constructor(form: ChurnForm, probe: Probe) {
    this.#form = form;
    this.#probe = probe;
  }

  phases(sizes: ChurnSizes): NamedPhase[] {
    const { routes, most, editSeconds, singles } = sizes;
    const named = (title: string, isFlood: boolean, work: () => Promise<Measured>): NamedPhase => ({
      title,
      work: async () => ({ title, isFlood, ...(await work()) }),
    });
    return [
      named(`${routes} routes added, ${PER_SECOND} a second`, false, () =>
        this.#writeOnSchedule(routes, PER_SECOND, (at) => this.#create(at)),
      ),
      named(`${editSeconds * PER_SECOND} edits, ${PER_SECOND} a second`, false, () =>
        this.#writeOnSchedule(editSeconds * PER_SECOND, PER_SECOND, (at) => this.#change((at * 7) % routes)),
      ),
      named(`up to ${most} routes, as fast as they are taken`, true, () =>
        this.#writeOnSchedule(most - routes, Infinity, (at) => this.#create(routes + at)),
      ),
      named(`one edit after the other, ${most} routes`, false, () => this.#singles(singles, most)),
    ];
  }

  /** Creates and deletes the routes of one round; resolves when none of them serves any more. */
  async createAndDelete(first: number): Promise<void> {
    const routes = Array.from({ length: ROUND_ROUTES }, (_, at) => first + at);
    const last = first + ROUND_ROUTES - 1;
    const rest = routes.slice(0, -1);
    await inParallel(rest, (route) => this.#form.create(route));
    await this.#probe.live({ path: pathOf(last, 0), status: 200, atMs: await this.#form.create(last) });
    await inParallel(rest, (route) => this.#form.remove(route));
    await this.#probe.live({ path: pathOf(last, 0), status: 404, atMs: await this.#form.remove(last) });
  }

  async #create(route: number): Promise<Written> {
    this.#versions[route] = 0;
    return { path: pathOf(route, 0), status: 200, atMs: await this.#form.create(route) };
  }

  async #change(route: number): Promise<Written> {
    const version = (this.#versions[route] ?? 0) + 1;
    this.#versions[route] = version;
    return { path: pathOf(route, version), status: 200, atMs: await this.#form.change(route, version) };
  }

  async #singles(times: number, routes: number): Promise<Measured> {
    const milliseconds: number[] = [];
    for (let at = 0; at < times; at += 1) {
      milliseconds.push(await this.#probe.live(await this.#change((at * 13) % routes)));
    }
    return { milliseconds, writes: times };
  }

  /** Writes on a schedule. It does not wait until a write serves, but for one of IN_FLIGHT writers to be free. */
  async #writeOnSchedule(
    writes: number,
    perSecond: number,
    write: (at: number) => Promise<Written>,
  ): Promise<Measured> {
    let newest: Written | undefined;
    let isOver = false;
    const followed = this.#probe.follow(
      () => newest,
      () => isOver,
    );
    const began = performance.now();
    const onTime = async (at: number): Promise<void> => {
      const waitMs = began + (at * 1_000) / perSecond - performance.now();
      if (waitMs > 0) await delay(waitMs);
      newest = await write(at);
    };
    try {
      await inParallel(
        Array.from({ length: writes }, (_, at) => at),
        onTime,
      );
    } finally {
      isOver = true;
    }
    return { milliseconds: await followed, writes };
  }
}

/** Starts the work in the order of the items, at most IN_FLIGHT at a time. */
async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items[Symbol.iterator]();
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      for (const item of left) await work(item);
    }),
  );
}

function startSteady(loadgen: string, { name, port }: ChurnForm, path: string): RunningLoad {
  const row = ROWS.find((each) => each.name === "get");
  if (row === undefined) throw new TypeError("the table of rows has no GET");
  return startLoad(loadgen, { name, port, targets: { get: { path } } }, row, LOAD);
}

function startFlapping(form: ChurnForm): { stop(): Promise<void> } {
  let isOver = false;
  const running = (async () => {
    for (let turn = 0; !isOver; turn += 1) {
      await form.flap(turn);
      await delay(FLAP_MS);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await running;
    },
  };
}

async function weigh({ processes }: ChurnForm, round: number): Promise<Weight[]> {
  const weights: Weight[] = [];
  for (const { name, running, inspectorPort } of processes) {
    const heap = await heapMiB(inspectorPort);
    weights.push({ process: name, round, heapMiB: heap, residentMiB: running.residentMiB() });
  }
  return weights;
}

export function churnTables(churned: readonly Churned[]): string {
  const head = ["change to live traffic, ms", "form", "median", "p99", "worst", "writes", "measured"];
  const rows = churned.flatMap(({ form, phases }) =>
    phases.map(({ title, milliseconds, writes }) => [
      title,
      form,
      figure(median(milliseconds)),
      figure(percentile(milliseconds, 0.99)),
      figure(percentile(milliseconds, 1)),
      String(writes),
      String(milliseconds.length),
    ]),
  );
  const lines = churned.map(({ form, loads }) => {
    const sum = (count: (load: Load) => number): number => loads.reduce((total, load) => total + count(load), 0);
    const failed = sum(({ bad, ioerr }) => bad + ioerr);
    const first = loads.find(({ first_error }) => first_error !== undefined)?.first_error;
    return `${form}: ${failed} of ${sum(({ ok, bad, ioerr }) => ok + bad + ioerr)} other requests failed${first === undefined ? "" : `, the first: ${first}`}\n`;
  });
  return `${printTable(head, rows)}${lines.join("")}\n${churned.map(weightTable).join("\n")}`;
}

/** Prints two lines for each process: its heap after a full collection, and its resident memory. */
function weightTable({ form, weights }: Churned): string {
  const rounds = [...new Set(weights.map(({ round }) => round))];
  const rows = [...new Set(weights.map(({ process }) => process))].flatMap((process) => {
    const own = weights.filter((weight) => weight.process === process);
    return [
      [`${process}, heap`, ...own.map((weight) => figure(weight.heapMiB))],
      [`${process}, resident`, ...own.map((weight) => figure(weight.residentMiB))],
    ];
  });
  return printTable([`${form}: MiB after round`, ...rounds.map(String)], rows);
}
