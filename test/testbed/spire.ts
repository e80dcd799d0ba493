/**
 * A real SPIRE on loopback, for the slow lane: a server with one trust domain, and an agent of this node that was let in by a
 * join token. Both end with the test, however it ends.
 */
import { execFile, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../support/fixtures/free-ports.ts";
import type { ProofContext } from "../support/proofs/prove.ts";
import { programs } from "./programs.ts";
import { startTied } from "./services.ts";

interface Entry {
  /** Path of the SPIFFE ID. */
  readonly path: string;
  /** "unix:uid:0", "unix:path:/usr/bin/node" */
  readonly selectors: readonly string[];
  readonly ttlSeconds: number;
}

/** What a workload holds: PEM. */
export interface Fetched {
  readonly certificate: string;
  readonly privateKey: string;
  readonly bundle: string;
}

export interface Spire {
  /** unix:///… of the Workload API. */
  readonly endpoint: string;
  /** @returns what `remove` takes */
  register(entry: Entry): Promise<string>;
  remove(id: string): Promise<void>;
  /** The identity of SPIRE's own command, once there is an entry for its path. */
  fetch(): Promise<Fetched>;
  startAgent(): Promise<void>;
  stopAgent(): Promise<void>;
  /** Program whose path selects it. */
  readonly command: string;
}

const TRUST_DOMAIN = "example.org";
const AGENT = `spiffe://${TRUST_DOMAIN}/agent`;
const READY_WITHIN_MS = 30_000;
const run = promisify(execFile);

export async function startSpire(context: Pick<ProofContext, "after">): Promise<Spire> {
  const bin = await programs("spire");
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-spire-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const spire = new LocalSpire(context, bin, folder);
  await spire.start();
  return spire;
}

class LocalSpire implements Spire {
  readonly endpoint: string;
  readonly command: string;
  readonly #context: Pick<ProofContext, "after">;
  readonly #server: string;
  readonly #folder: string;
  readonly #serverSocket: string;
  readonly #agentSocket: string;
  #agent: ChildProcess | undefined;
  #fetches = 0;

  constructor(context: Pick<ProofContext, "after">, bin: string, folder: string) {
    this.#context = context;
    this.#folder = folder;
    this.command = join(bin, "spire-agent");
    this.#server = join(bin, "spire-server");
    this.#serverSocket = join(folder, "server.sock");
    this.#agentSocket = join(folder, "agent.sock");
    this.endpoint = `unix://${this.#agentSocket}`;
  }

  async start(): Promise<void> {
    const port = await freePort();
    const config = this.#write("server.conf", serverConfig(this.#folder, port));
    startTied(this.#context, this.#server, ["run", "-config", config], {}).stdout?.resume();
    await becomesReady(() => this.#ask("healthcheck"));
    const { value } = JSON.parse(await this.#ask("token", "generate", "-spiffeID", AGENT, "-output", "json")) as {
      value: string;
    }; // as the command prints it
    this.#write("bundle.pem", await this.#ask("bundle", "show"));
    this.#write("agent.conf", agentConfig(this.#folder, port, value));
    await this.startAgent();
  }

  async startAgent(): Promise<void> {
    this.#agent = startTied(this.#context, this.command, ["run", "-config", join(this.#folder, "agent.conf")], {});
    this.#agent.stdout?.resume();
    await becomesReady(() => run(this.command, ["healthcheck", "-socketPath", this.#agentSocket]));
  }

  async stopAgent(): Promise<void> {
    const ended = this.#agent && once(this.#agent, "exit");
    this.#agent?.stdin?.end();
    await ended;
  }

  async register({ path, selectors, ttlSeconds }: Entry): Promise<string> {
    const id = ["-parentID", AGENT, "-spiffeID", `spiffe://${TRUST_DOMAIN}${path}`];
    const more = [...selectors.flatMap((each) => ["-selector", each]), "-x509SVIDTTL", String(ttlSeconds)];
    const printed = await this.#ask("entry", "create", ...id, ...more, "-output", "json");
    const { results } = JSON.parse(printed) as { results: { entry: { id: string } }[] }; // as the command prints it
    return results[0]?.entry.id ?? "";
  }

  async remove(id: string): Promise<void> {
    await this.#ask("entry", "delete", "-entryID", id);
  }

  async fetch(): Promise<Fetched> {
    const folder = join(this.#folder, `fetched-${++this.#fetches}`);
    mkdirSync(folder);
    const fetch = ["api", "fetch", "x509", "-socketPath", this.#agentSocket, "-write", folder];
    // The agent hears of a new entry some seconds later.
    await becomesReady(() => run(this.command, fetch));
    const file = (name: string): string => readFileSync(join(folder, name), "utf8");
    return { certificate: file("svid.0.pem"), privateKey: file("svid.0.key"), bundle: file("bundle.0.pem") };
  }

  async #ask(...command: readonly string[]): Promise<string> {
    const { stdout } = await run(this.#server, [...command, "-socketPath", this.#serverSocket]);
    return stdout;
  }

  #write(name: string, text: string): string {
    const path = join(this.#folder, name);
    writeFileSync(path, text);
    return path;
  }
}

function serverConfig(folder: string, port: number): string {
  return `
server {
  bind_address = "127.0.0.1"
  bind_port = "${port}"
  socket_path = "${folder}/server.sock"
  trust_domain = "${TRUST_DOMAIN}"
  data_dir = "${folder}/server"
  log_level = "ERROR"
}
plugins {
  DataStore "sql" {
    plugin_data { database_type = "sqlite3" connection_string = "${folder}/entries.sqlite3" }
  }
  NodeAttestor "join_token" { plugin_data {} }
  KeyManager "memory" { plugin_data {} }
}
`;
}

function agentConfig(folder: string, port: number, joinToken: string): string {
  return `
agent {
  server_address = "127.0.0.1"
  server_port = "${port}"
  socket_path = "${folder}/agent.sock"
  trust_bundle_path = "${folder}/bundle.pem"
  trust_domain = "${TRUST_DOMAIN}"
  data_dir = "${folder}/agent"
  join_token = "${joinToken}"
  log_level = "ERROR"
}
plugins {
  NodeAttestor "join_token" { plugin_data {} }
  KeyManager "disk" { plugin_data { directory = "${folder}/agent" } }
  WorkloadAttestor "unix" { plugin_data { discover_workload_path = true } }
}
`;
}

/** @throws what went wrong last */
async function becomesReady(check: () => Promise<unknown>): Promise<void> {
  const until = performance.now() + READY_WITHIN_MS;
  for (;;) {
    try {
      await check();
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(100);
    }
  }
}
