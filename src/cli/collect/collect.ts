/**
 * `gwproxy collect`: a support bundle, a folder of files with everything that a report of a fault needs: objects with
 * their statuses, Events, logs, metrics, dumps and versions, secrets masked, and a list of what is in it. What cannot
 * be read is named in that list, and everything else is collected all the same.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FatalError, messageOf } from "../../lib/errors.ts";
import { isRecord } from "../../lib/is-record.ts";
import type { Terminal } from "../../lib/terminal.ts";
import { VERSION } from "../../lib/version.ts";
import type { KubernetesClient } from "../../sources/kubernetes/client.ts";
import { collectionPath, OWN_KINDS, STANDARD_KINDS, type WatchedKind } from "../../sources/kubernetes/kinds.ts";
import { forwardPort } from "../../sources/kubernetes/port-forward.ts";
import { connect, withAdmins, type PodOptions } from "../pods/admin-client.ts";
import { DEFAULT_PORTS } from "../pods/default-ports.ts";
import { maskObject, maskText } from "./mask.ts";

export interface CollectOptions extends PodOptions {
  /** Folder of the bundle. */
  readonly output: string;
  /** Port of the metrics server of data planes. */
  readonly metricsPort: number;
  /** Port of the metrics server of controllers; unset: the usual one. */
  readonly controllerMetricsPort?: number | undefined;
}

/** Lines of the log of each container. */
const LOG_LINES = "5000";
const GATEWAY_LABEL = "gateway.networking.k8s.io/gateway-name";
const CONTROLLER_LABEL = "app.kubernetes.io/name=gwproxy";

/** The files of a bundle, and what could not be read. */
class Bundle {
  readonly #folder: string;
  readonly #lines: string[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Collects one file; a failure is noted and nothing else stops. */
  async add(path: string, what: string, read: () => Promise<string>): Promise<void> {
    try {
      const text = await read();
      const file = join(this.#folder, path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text, { mode: 0o600 });
      this.#lines.push(`${path}: ${what}`);
    } catch (error) {
      this.#lines.push(`missing ${path}: ${what}: ${maskText(messageOf(error))}`);
    }
  }

  async finish(): Promise<readonly string[]> {
    const text = `${this.#lines.join("\n")}\n`;
    await mkdir(this.#folder, { recursive: true });
    await writeFile(join(this.#folder, "CONTENTS.txt"), text, { mode: 0o600 });
    return this.#lines;
  }
}

export async function collect(options: CollectOptions, terminal: Terminal): Promise<void> {
  // Without a cluster there is nothing to collect, and no folder is left behind.
  const client = options.local === true ? undefined : await connect(options.kubeconfig);
  const bundle = new Bundle(options.output);
  await bundle.add("versions.json", "versions of gwproxy and Node.js on this machine", () =>
    Promise.resolve(`${JSON.stringify({ gwproxy: VERSION, node: process.versions.node }, undefined, 2)}\n`),
  );
  if (client === undefined) await collectAdmin(bundle, undefined, options);
  else await collectCluster(bundle, client, options);
  const lines = await bundle.finish();
  const missing = lines.filter((line) => line.startsWith("missing "));
  for (const line of missing) terminal.err(`${line}\n`);
  terminal.out(
    `${options.output}: ${lines.length - missing.length} files, listed in CONTENTS.txt; look through them before you send them\n`,
  );
  if (lines.length - missing.length <= 1)
    throw new FatalError("nothing could be collected; is the cluster reachable, or did you mean --local?");
}

async function collectCluster(bundle: Bundle, client: KubernetesClient, options: CollectOptions): Promise<void> {
  try {
    await bundle.add("cluster/version.json", "version of the API server", () => readObject(client, "/version"));
    for (const kind of [...STANDARD_KINDS, ...OWN_KINDS])
      await bundle.add(`objects/${kind.plural}.json`, `all objects of the kind ${kind.kind}`, () =>
        listKind(client, kind),
      );
    await bundle.add("events.json", "Events of all namespaces", () => readObject(client, "/api/v1/events"));
    for (const pod of [...(await podsOf(client, GATEWAY_LABEL)), ...(await podsOf(client, CONTROLLER_LABEL))]) {
      await collectPod(bundle, client, pod);
      await collectAdmin(bundle, pod, pod.isDataPlane ? options : controllerPorts(options));
    }
  } finally {
    client.close();
  }
}

function controllerPorts(options: CollectOptions): CollectOptions {
  const { controllerAdmin, controllerMetrics } = DEFAULT_PORTS;
  const { controllerAdminPort = controllerAdmin, controllerMetricsPort = controllerMetrics } = options;
  return { ...options, proxyAdminPort: controllerAdminPort, metricsPort: controllerMetricsPort };
}

interface CollectedPod {
  readonly namespace: string;
  readonly name: string;
  readonly isDataPlane: boolean;
}

async function podsOf(client: KubernetesClient, labelSelector: string): Promise<CollectedPod[]> {
  // A cluster in which pods cannot be listed is named as missing where the pods are asked for.
  const answer = await client
    .request({ method: "GET", path: "/api/v1/pods", query: { labelSelector } })
    .catch(() => undefined);
  const items = isRecord(answer) && Array.isArray(answer["items"]) ? answer["items"] : [];
  return items.flatMap((item: unknown) => {
    const metadata = isRecord(item) && isRecord(item["metadata"]) ? item["metadata"] : {};
    const { namespace, name } = metadata;
    if (typeof namespace !== "string" || typeof name !== "string") return [];
    return [{ namespace, name, isDataPlane: labelSelector === GATEWAY_LABEL }];
  });
}

async function collectPod(bundle: Bundle, client: KubernetesClient, { namespace, name }: CollectedPod): Promise<void> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const folder = `pods/${namespace}/${name}`;
  await bundle.add(`${folder}/pod.json`, "the pod and its status", () => readObject(client, path));
  await bundle.add(`${folder}/log.txt`, "the last lines of its log", async () => {
    const stream = await client.stream({ method: "GET", path: `${path}/log`, query: { tailLines: LOG_LINES } });
    stream.setEncoding("utf8");
    let text = "";
    for await (const chunk of stream) text += chunk as string; // setEncoding makes every chunk a string
    return maskText(text);
  });
}

/** Collects what the admin and metrics servers of a data plane or controller say. @param pod undefined for this machine */
async function collectAdmin(bundle: Bundle, pod: CollectedPod | undefined, options: CollectOptions): Promise<void> {
  const folder = pod === undefined ? "local" : `pods/${pod.namespace}/${pod.name}`;
  const resource = pod === undefined ? undefined : `pod/${pod.name}.${pod.namespace}`;
  const ask = async (path: string): Promise<string> => {
    const [text = ""] = await withAdmins(resource, options, "first", (client) => client.get(path));
    return text;
  };
  await bundle.add(`${folder}/config_dump.json`, "the configuration in force", async () =>
    printMasked(await ask("/config_dump")),
  );
  for (const path of ["memory", "logging", "debug/tasks"])
    await bundle.add(`${folder}/${path.replace("/", "-")}.txt`, `/${path} of the admin server`, async () =>
      maskText(await ask(`/${path}`)),
    );
  await bundle.add(`${folder}/metrics.txt`, "the metrics", () => readMetrics(pod, options));
}

async function readMetrics(
  pod: CollectedPod | undefined,
  { kubeconfig, metricsPort }: CollectOptions,
): Promise<string> {
  const forwarded =
    pod === undefined
      ? { port: metricsPort, close: () => undefined }
      : await forwardPort(kubeconfig, { namespace: pod.namespace, pod: pod.name, port: metricsPort });
  try {
    return maskText(await (await fetch(`http://127.0.0.1:${forwarded.port}/metrics`)).text());
  } finally {
    forwarded.close();
  }
}

async function listKind(client: KubernetesClient, kind: WatchedKind): Promise<string> {
  let failure: unknown;
  for (const version of kind.versions)
    try {
      return await readObject(client, collectionPath(kind, version), `${kind.group}/${kind.kind}`);
    } catch (error) {
      failure ??= error;
    }
  throw failure;
}

/** @param groupKind of the members of a list, which do not name their kind; it decides what is masked */
async function readObject(client: KubernetesClient, path: string, groupKind?: string): Promise<string> {
  const answer = await client.request({ method: "GET", path });
  if (!isRecord(answer) || !Array.isArray(answer["items"])) return printJson(maskObject(answer));
  const items = answer["items"].map((item: unknown) => maskObject(item, groupKind));
  return printJson({ kind: answer["kind"], items });
}

/** The process has masked its dump already; text in it may still have the form of a secret. */
function printMasked(json: string): string {
  return maskText(json);
}

function printJson(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
