/**
 * The reference endpoint picker of the Gateway API inference extension as a process on loopback, for the pool `llama` of
 * the namespace `default`. It follows a real API server and reads the metrics of the model servers. It ends with the test,
 * however it ends.
 */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePorts } from "../support/fixtures/free-ports.ts";
import { call } from "../support/clients/http.ts";
import { eventually } from "../support/gateway/process.ts";
import type { ProofContext } from "../support/proofs/prove.ts";
import { programs } from "./programs.ts";
import { startTied } from "./services.ts";

type Cleaner = Pick<ProofContext, "after">;

/** The shortest queue wins; a second endpoint is named for the case that the first one cannot be reached. */
const CONFIGURATION = `apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: queue-scorer
  - type: kv-cache-utilization-scorer
  - type: max-score-picker
    parameters: {maxNumOfEndpoints: 2}
schedulingProfiles:
  - name: default
    plugins:
      - {pluginRef: queue-scorer, weight: 2}
      - {pluginRef: kv-cache-utilization-scorer, weight: 1}
      - {pluginRef: max-score-picker}
`;

/** Each port of a pod is a rank of it. */
const QUEUE = /^inference_pool_per_pod_queue_size\{model_server_pod="([^"]+)-rank-0",.*\} (\d+)$/gm;

export class ReferencePicker {
  /** Of gRPC, over TLS with a certificate that it makes at its start. */
  readonly port: number;
  /** The endpoints that it has named, in its order, by the id of the request. It writes them to its log. */
  readonly choices: Map<string, readonly string[]> = new Map();
  readonly #context: Cleaner;
  readonly #program: string;
  readonly #args: readonly string[];
  readonly #kubeconfig: string;
  readonly #metrics: number;
  readonly #lines: string[] = [];
  #process: ChildProcess | undefined;

  constructor(
    context: Cleaner,
    program: string,
    { kubeconfig, ports, configuration }: { kubeconfig: string; ports: readonly number[]; configuration: string },
  ) {
    const [port = 0, health = 0, metrics = 0] = ports;
    this.#context = context;
    this.#program = program;
    this.#kubeconfig = kubeconfig;
    this.#metrics = metrics;
    this.port = port;
    const pool = ["--pool-name", "llama", "--pool-namespace", "default", "--config-file", configuration];
    const places = ["--grpc-port", port, "--grpc-health-port", health, "--metrics-port", metrics].map(String);
    const open = ["--metrics-endpoint-auth=false", "--enable-pprof=false", "--tracing=false"];
    // At this level it writes each choice.
    const log = ["--v", "3", "--zap-encoder", "json"];
    this.#args = [...pool, ...places, ...open, ...log];
  }

  start(): void {
    // Its log goes to stderr.
    const command = ["-c", `exec "$0" "$@" 2>&1`, this.#program, ...this.#args];
    const child = startTied(this.#context, "sh", command, { KUBECONFIG: this.#kubeconfig });
    this.#process = child;
    if (child.stdout === null) throw new Error("the picker has no output"); // a pipe was asked for
    createInterface({ input: child.stdout }).on("line", (line) => this.#read(line));
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    const child = this.#process;
    const ended = child && once(child, "exit");
    child?.stdin?.end();
    await ended;
  }

  /** Resolves when it knows the replicas and their queues. @param queues length of the queue by name of the pod */
  async knows(queues: Readonly<Record<string, number>>): Promise<void> {
    await eventually(async () => {
      const { body } = await call(`http://127.0.0.1:${this.#metrics}/metrics`);
      const known = Object.fromEntries([...body.matchAll(QUEUE)].map(([, pod = "", length]) => [pod, Number(length)]));
      assert.deepEqual(known, queues, this.#lines.slice(-15).join("\n"));
    });
  }

  #read(line: string): void {
    this.#lines.push(line);
    if (this.#lines.length > 20) this.#lines.shift();
    if (!line.includes('"Request handled"')) return;
    const entry = JSON.parse(line) as { "x-request-id": string; endpoint: string }; // as its structured log has it
    this.choices.set(entry["x-request-id"], entry.endpoint.split(","));
  }
}

/** Starts it on the API server of the kubeconfig; `knows` tells when it is ready. */
export async function startReferencePicker(context: Cleaner, kubeconfig: string): Promise<ReferencePicker> {
  const program = join(await programs("inference"), "epp");
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-picker-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const configuration = join(folder, "picker.yaml");
  writeFileSync(configuration, CONFIGURATION);
  const picker = new ReferencePicker(context, program, { kubeconfig, ports: await freePorts(3), configuration });
  picker.start();
  return picker;
}
