/**
 * Sends requests to the admin servers of data planes and controllers, on this machine or in pods over a port-forward.
 * Commands that ask them use it.
 */
import { readFile } from "node:fs/promises";
import { FatalError, messageOf } from "../../lib/errors.ts";
import { createKubernetesClient, type KubernetesClient } from "../../sources/kubernetes/client.ts";
import { currentNamespace, forwardPort, type ForwardedPort } from "../../sources/kubernetes/port-forward.ts";
import { DEFAULT_PORTS } from "./default-ports.ts";
import { findPods, type FoundPod } from "./find-pods.ts";

/** Options of every command that asks data planes. */
export interface PodOptions {
  readonly namespace?: string | undefined;
  readonly kubeconfig?: string | undefined;
  readonly proxyAdminPort: number;
  /** Port of the admin server of controllers; unset: the usual one. */
  readonly controllerAdminPort?: number | undefined;
  readonly adminTokenFile?: string | undefined;
  /** Asks the data plane on this machine. */
  readonly local?: boolean | undefined;
}

export interface AdminClient {
  /** "namespace/pod", or "localhost". */
  readonly name: string;
  get(path: string): Promise<string>;
  post(path: string): Promise<string>;
  /** Opens an answer that streams. */
  open(path: string): Promise<ReadableStream<Uint8Array>>;
  /** Opens another port of the same pod; on this machine the port itself. */
  forward(port: number): Promise<ForwardedPort>;
  close(): void;
}

/**
 * Runs work on each of the pods that a resource means, one after the other.
 * @param count how many pods to ask; "first" asks the first by name
 */
export async function withAdmins<T>(
  resource: string | undefined,
  options: PodOptions,
  count: "first" | "all",
  work: (client: AdminClient) => Promise<T>,
): Promise<T[]> {
  if (options.local === true) {
    if (resource !== undefined)
      throw new FatalError("--local and a resource exclude each other; leave one of them out", 2);
    return [await withLocal(options, work)];
  }
  const cluster = await connect(options.kubeconfig);
  try {
    const namespace = options.namespace ?? (await currentNamespace(options.kubeconfig));
    const pods = await findPods(cluster, resource, namespace);
    const results: T[] = [];
    for (const pod of count === "first" ? pods.slice(0, 1) : pods) results.push(await withPod(pod, options, work));
    return results;
  } finally {
    cluster.close();
  }
}

/** @throws FatalError with the next step where there is no cluster */
export async function connect(kubeconfig: string | undefined): Promise<KubernetesClient> {
  try {
    return await createKubernetesClient(kubeconfig);
  } catch (error) {
    const next = "name one with --kubeconfig, or ask a data plane on this machine with --local";
    throw new FatalError(`${messageOf(error)}; ${next}`, 1, error);
  }
}

async function withLocal<T>(options: PodOptions, work: (client: AdminClient) => Promise<T>): Promise<T> {
  const forward = (port: number): Promise<ForwardedPort> => Promise.resolve({ port, close: () => undefined });
  return work(await adminClient("localhost", options.proxyAdminPort, options, { forward, close: () => undefined }));
}

async function withPod<T>(
  { namespace, name, isController = false }: FoundPod,
  options: PodOptions,
  work: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const open: ForwardedPort[] = [];
  const forward = async (port: number): Promise<ForwardedPort> => {
    const forwarded = await forwardPort(options.kubeconfig, { namespace, pod: name, port });
    open.push(forwarded);
    return forwarded;
  };
  const close = (): void => {
    for (const each of open) each.close();
  };
  try {
    const { proxyAdminPort, controllerAdminPort = DEFAULT_PORTS.controllerAdmin } = options;
    const { port } = await forward(isController ? controllerAdminPort : proxyAdminPort);
    return await work(await adminClient(`${namespace}/${name}`, port, options, { forward, close }));
  } finally {
    close();
  }
}

async function adminClient(
  name: string,
  port: number,
  { adminTokenFile, local }: PodOptions,
  rest: Pick<AdminClient, "forward" | "close">,
): Promise<AdminClient> {
  const token = adminTokenFile === undefined ? undefined : (await readFile(adminTokenFile, "utf8")).trim();
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const send = async (method: string, path: string): Promise<Response> => {
    let response: Response;
    try {
      response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
    } catch (error) {
      const next =
        local === true
          ? `is a data plane running here, such as gwproxy up, and its admin server on --proxy-admin-port (${port})?`
          : "is its admin server on --proxy-admin-port (of a controller: --controller-admin-port), and may you create pods/portforward?";
      throw new FatalError(`${name} does not answer on its admin port: ${messageOf(error)}; ${next}`, 1, error);
    }
    if (response.ok) return response;
    const text = (await response.text()).trim();
    const next = response.status === 401 ? "; give the token with --admin-token-file" : "";
    throw new FatalError(`${name} refuses ${method} ${path.split("?", 1)[0]}: ${response.status} ${text}${next}`);
  };
  return {
    ...rest,
    name,
    get: async (path) => (await send("GET", path)).text(),
    post: async (path) => (await send("POST", path)).text(),
    async open(path) {
      const { body } = await send("GET", path);
      if (body === null) throw new FatalError(`${name} sent no stream for ${path}`);
      return body;
    },
  };
}
