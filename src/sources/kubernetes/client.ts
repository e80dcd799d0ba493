/**
 * Sends requests to a Kubernetes API server; everything in this folder uses it. `@kubernetes/client-node` finds the
 * server and authenticates (kubeconfig, exec and OIDC plugins, the pod's token). The requests themselves use
 * node:https, because the library's Watch drops lines that it cannot parse, and its typed clients know neither our
 * kinds nor streaming. See docs/adr/0015-client-node-finds-the-cluster.md. The library is imported only here and only
 * when a client is created, because loading it takes seconds.
 */
import { once } from "node:events";
import { Agent, request as httpsRequest, type RequestOptions } from "node:https";
import { Agent as PlainAgent, request as httpRequest, type IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { isGwError, messageOf, SourceError } from "../../lib/errors.ts";
import { ignore } from "../../lib/ignore.ts";
import { ApiError, apiErrorOf } from "./api-error.ts";

const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 30_000;

export interface KubernetesRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path such as "/api/v1/namespaces/default/secrets/x". */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly accept?: string;
  readonly contentType?: string;
  /** Value that is sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** Receives each warning (`Warning` header) of the answer, whether or not the server refused the request. */
  readonly onWarning?: (text: string) => void;
}

export interface KubernetesClient {
  /** Address of the API server, for messages. */
  readonly server: string;
  /**
   * Sends a request and returns its JSON answer.
   * @throws ApiError when the server refuses or does not answer within 30 s
   */
  request(request: KubernetesRequest): Promise<unknown>;
  /**
   * Sends a request and returns the body of its answer as it arrives, such as a watch.
   * @throws ApiError when the server refuses
   */
  stream(request: KubernetesRequest): Promise<Readable>;
  /** Closes idle connections. */
  close(): void;
}

/**
 * @param kubeconfigPath path of a kubeconfig file; by default $KUBECONFIG, ~/.kube/config or the pod's service account
 * @param context name of a context of it; by default the current one
 * @throws SourceError when there is no usable configuration
 */
export async function createKubernetesClient(kubeconfigPath?: string, context?: string): Promise<KubernetesClient> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  try {
    if (kubeconfigPath === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfigPath);
  } catch (cause) {
    throw new SourceError(`the kubeconfig cannot be read: ${messageOf(cause)}`, { cause });
  }
  if (context !== undefined) {
    const names = config.getContexts().map(({ name }) => name);
    if (!names.includes(context)) {
      throw new SourceError(`the kubeconfig has no context "${context}"; it has: ${names.join(", ") || "none"}`);
    }
    config.setCurrentContext(context);
  }
  const cluster = config.getCurrentCluster();
  // The library falls back to an unprotected server on port 8080, which clusters no longer run.
  if (cluster === null || cluster.server === "http://localhost:8080") {
    throw new SourceError("no Kubernetes cluster is configured: name a kubeconfig, or run in a pod");
  }
  const base = new URL(cluster.server);
  const pool = base.protocol === "https:" ? new Agent(POOL) : new PlainAgent(POOL);

  const send = async (request: KubernetesRequest, signal: AbortSignal | undefined): Promise<IncomingMessage> => {
    const url = new URL(base);
    url.pathname = base.pathname.replace(/\/$/, "") + request.path;
    for (const [name, value] of Object.entries(request.query ?? {})) url.searchParams.set(name, value);
    // Credentials are applied to each request, because token and certificate files are rotated while the process runs.
    const options: RequestOptions = { method: request.method, headers: {} };
    await config.applyToHTTPSOptions(options);
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const headers: Record<string, string> = {
      ...(options.headers as Record<string, string>), // the library stores plain strings there
      accept: request.accept ?? "application/json",
      "user-agent": "gwproxy",
    };
    if (body !== undefined) headers["content-type"] = request.contentType ?? "application/json";
    // A configured forward proxy needs the library's own agent; otherwise connections are pooled.
    const agent = cluster.proxyUrl === undefined ? pool : options.agent;
    const open = base.protocol === "https:" ? httpsRequest : httpRequest;
    const outgoing = open(url, { ...options, headers, agent, ...(signal === undefined ? {} : { signal }) });
    outgoing.end(body);
    // After the response has begun, its own stream reports errors.
    outgoing.on("error", ignore);
    // `once` rejects with the error when the connection fails first.
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    return response;
  };

  const call = async <T>(request: KubernetesRequest, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (cause) {
      if (isGwError(cause)) throw cause;
      throw new ApiError(`${describe(request)}: ${messageOf(cause)}`, { status: 0, cause });
    }
  };

  return {
    server: cluster.server,
    request: (request) =>
      call(request, async () => {
        const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
        const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
        const response = await send(request, signal);
        if (request.onWarning !== undefined) warningsOf(response).forEach(request.onWarning);
        const text = await readText(response);
        if (!isSuccess(response)) throw apiErrorOf(parseJson(text), describe(request), response.statusCode ?? 0);
        return JSON.parse(text) as unknown;
      }),
    stream: (request) =>
      call(request, async () => {
        const unanswered = new AbortController();
        const timer = setTimeout(() => unanswered.abort(new SourceError("no answer")), REQUEST_TIMEOUT_MS);
        const signals = request.signal === undefined ? [] : [request.signal];
        const response = await send(request, AbortSignal.any([unanswered.signal, ...signals])).finally(() =>
          clearTimeout(timer),
        );
        if (isSuccess(response)) return response;
        throw apiErrorOf(parseJson(await readText(response)), describe(request), response.statusCode ?? 0);
      }),
    close: () => pool.destroy(),
  };
}

const POOL = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS } as const;

function isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
  return statusCode >= 200 && statusCode < 300;
}

/**
 * Parses warnings of the form `299 - "text"` (RFC 7234 §5.5). `headersDistinct` keeps each header as an item of its
 * own.
 */
function warningsOf({ headersDistinct }: IncomingMessage): string[] {
  return (headersDistinct["warning"] ?? []).flatMap((line) => {
    const quoted = /^299 \S+ ("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
    return quoted === undefined ? [] : [quoted.slice(1, -1).replaceAll(/\\(.)/g, "$1")];
  });
}

function describe({ method, path }: KubernetesRequest): string {
  return `${method} ${path}`;
}

async function readText(response: IncomingMessage): Promise<string> {
  response.setEncoding("utf8");
  let text = "";
  for await (const chunk of response) text += chunk as string; // setEncoding makes every chunk a string
  return text;
}

/**
 * Returns undefined for bodies that are not JSON, such as the HTML of a proxy; the HTTP status is then all that is
 * known.
 */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
