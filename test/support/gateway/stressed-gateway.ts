/**
 * Runs the packaged gateway as a separate process for stress tests and attacks. It measures memory and open files,
 * checks that honest clients are still served, and checks the log. The backend runs in the test's own process.
 */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { freePorts } from "../fixtures/free-ports.ts";
import { documents, gatewayPolicy, pemObject, route, routePolicy, staticBackend } from "./gateway.ts";
import { call } from "../clients/http.ts";
import { eventually, startGwproxy } from "./process.ts";
import type { ProofContext } from "../proofs/prove.ts";
import { validNow } from "../servers/tls-upstream.ts";

const ROOT = join(import.meta.dirname, "../../..");
const HONEST = join(ROOT, "test/slow/honest.ts");
const run = promisify(execFile);

export interface StressedGateway {
  /** Port of the plain-text listener; `securePort` is the one with TLS. */
  readonly port: number;
  readonly securePort: number;
  /** Returns the resident memory of the process in MiB. */
  residentMb(): number;
  /** Returns the number of files and sockets that the process holds open. */
  openFiles(): number;
  /**
   * Runs an honest client from before the attack begins until it is over; each of its requests must be answered.
   * @returns the client's summary
   */
  serving(attack: () => Promise<unknown>): Promise<string>;
  /** Checks that the process still runs and has logged no internal error. */
  isSound(): void;
}

let build: Promise<string> | undefined;

/**
 * Builds the package.
 * @returns its folder, which is removed when this process exits
 */
async function publishedForm(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-published-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  await run(process.execPath, [join(ROOT, "tools/package.ts"), join(folder, "dist")]);
  for (const file of ["package.json", "bin"]) cpSync(join(ROOT, file), join(folder, file), { recursive: true });
  return folder;
}

export const BIG_BYTES = 16_777_216;

/**
 * Settings of the process that do not depend on the machine. V8 collects a heap only when it has grown, by hundreds of
 * MiB on a large machine, so without a limit the resident memory would count the requests that were answered instead of
 * what the gateway holds. A thread that does hold more ends, which `isSound` finds.
 */
const HEAP = "--max-old-space-size=128 --max-semi-space-size=8";
const WORKERS = "2";

/** @param frontend flow YAML of `spec.frontend` of the Gateway's policy */
export async function startStressedGateway(
  context: Pick<ProofContext, "after">,
  frontend?: string,
): Promise<StressedGateway> {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-stressed-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const built = await (build ??= publishedForm());
  const [port = 0, securePort = 0] = await freePorts(2);
  const manifests = join(folder, "manifests.yaml");
  writeFileSync(manifests, objects(port, securePort, await startBackend(context), frontend));
  const flags = ["--admin-address", "--metrics-address", "--readiness-address"].flatMap((flag) => [
    flag,
    "127.0.0.1:0",
  ]);
  const settings = ["--bind-address", "127.0.0.1", "--workers", WORKERS, "--log-level", "warn"];
  const args = ["up", "-f", manifests, ...settings, ...flags];
  const up = startGwproxy(context, args, { NODE_OPTIONS: HEAP }, join(built, "bin/gwproxy.mjs"));
  await up.printed(`listening on 127.0.0.1:${securePort} for Gateway default/gw`);
  const ask = async (): Promise<void> => {
    const { status, body } = await call(`http://127.0.0.1:${port}/through`);
    assert.deepEqual([status, body], [200, "served"]);
  };
  await eventually(ask);
  return {
    port,
    securePort,
    residentMb: () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${up.pid}/status`, "utf8"))?.[1]) / 1024,
    openFiles: () => readdirSync(`/proc/${up.pid}/fd`).length,
    async serving(attack) {
      const honest = spawn(process.execPath, [HONEST, String(port)], { stdio: ["pipe", "pipe", "inherit"] });
      context.after(() => void honest.kill("SIGKILL"));
      const said: string[] = [];
      const lines = createInterface({ input: honest.stdout }).on("line", (line) => void said.push(line));
      const ended = once(honest, "exit");
      await Promise.race([once(lines, "line"), ended]);
      await attack();
      honest.stdin.end();
      const [code] = (await ended) as [number | null]; // as the event is declared
      assert.equal(code, 0, `${said.at(-1)}; the gateway printed:\n${up.output()}`);
      await ask().catch((error: unknown) => {
        throw new Error(`a request after the attack failed; the gateway printed:\n${up.output()}`, { cause: error });
      });
      return said.at(-1) ?? "";
    },
    isSound() {
      assert.doesNotMatch(up.output(), /unhandled|uncaught|TypeError|RangeError|worker .*(?:died|exited|replaced)/i);
      assert.doesNotThrow(() => process.kill(up.pid, 0));
    },
  };
}

function objects(port: number, securePort: number, backend: number, frontend: string | undefined): string {
  const { certificate, key } = createLeaf(createAuthority("test", validNow()), ["a.test"], validNow());
  return documents(
    `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners:
    - {name: http, port: ${port}, protocol: HTTP}
    - {name: https, port: ${securePort}, protocol: HTTPS, tls: {certificateRefs: [{name: a}]}}
`,
    pemObject("Secret", "a", { "tls.crt": certificate, "tls.key": key }),
    staticBackend("web", backend),
    route("web", "web"),
    // Path of the honest client. The gateway answers it directly, so that the client does not wait for a backend under
    // attack.
    route("honest", "web", "/honest"),
    routePolicy("honest", "honest", "  traffic: {directResponse: {status: 200, body: served}}"),
    ...(frontend === undefined ? [] : [gatewayPolicy("front", `  frontend: ${frontend}`)]),
  );
}

/** Starts a backend: /big answers with 16 MiB, /hang never; request bodies are discarded. */
async function startBackend(context: Pick<ProofContext, "after">): Promise<number> {
  const big = Buffer.alloc(BIG_BYTES, 97);
  const server = createServer((request, response) => {
    request.on("error", () => undefined).resume();
    if (request.url === "/hang") return;
    if (request.url === "/big") response.end(big);
    else request.on("end", () => response.end("served"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port; // a TCP server has such an address
}
