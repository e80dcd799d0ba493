/** A data plane with its admin server, for the commands that ask one, and a terminal that records what they print. */
import type { TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import { TcpRouteSchema } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { startAdminServer } from "../../../src/admin/server.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import { createLogger, type LogFilter } from "../../../src/lib/log.ts";
import type { Terminal } from "../../../src/lib/terminal.ts";
import { configDump } from "../../../src/runtime/dump.ts";
import { AppliedUpdates } from "../../../src/runtime/applied-updates.ts";
import { startUpstream } from "../servers/upstream.ts";
import {
  LISTENER,
  endpoints,
  listener,
  modelBackend,
  policy,
  prefix,
  route,
  serviceBackend,
  startDataPlane,
  to,
} from "./data-plane.ts";

interface Recorded extends Terminal {
  readonly printed: () => string;
  readonly errors: () => string;
}

export function recordTerminal(): Recorded {
  let out = "";
  let err = "";
  return {
    isColoured: false,
    out: (text) => void (out += text),
    err: (text) => void (err += text),
    printed: () => out,
    errors: () => err,
  };
}

export interface AdministeredPlane {
  readonly url: string;
  readonly port: number;
  readonly adminPort: number;
}

/** Starts a data plane with routes, policies and an admin server. */
export async function startAdministeredPlane(t: TestContext, token?: string): Promise<AdministeredPlane> {
  const upstream = await startUpstream((_request, response) => void response.end("hello"));
  t.after(() => upstream.close());
  const key = "backend/default/svc";
  const units = [
    { unit: { case: "headerModifiers" as const, value: { request: { set: [{ name: "x-a", value: "1" }] } } } },
  ];
  const { proxy, url, port } = await startDataPlane([
    listener(),
    route("shop", [to("svc")]),
    serviceBackend(key, 80),
    endpoints(key, [upstream.port]),
    resourceOf(
      "TcpRoute",
      create(TcpRouteSchema, {
        key: "tcproute/default/db",
        object: { kind: "TCPRoute", namespace: "default", name: "db" },
        parents: [{ listener: LISTENER }],
        backends: [
          { weight: 2, backend: key },
          { weight: 1, invalidReason: "no such Service" },
        ],
      }),
    ),
    policy("calls", {
      targets: [{ target: { case: "gateway", value: "default/gw" } }],
      backend: { tcp: { connectTimeoutMs: 5000 } },
      frontend: { http: { maxBufferBytes: 1_000_000 } },
    }),
    route("llm", [
      to("ai", {
        matches: prefix("/v1"),
        filters: [{ filter: { case: "mirror", value: { backend: key, numerator: 1, denominator: 4 } } }],
      }),
    ]),
    modelBackend("ai", upstream.port, "", "fast"),
    policy("fast", {
      targets: [{ target: { case: "backend", value: "backend/default/ai" }, section: "fast" }],
      backend: { http: { requestTimeoutMs: 1000 } },
    }),
    policy("edit", { targets: [{ target: { case: "route", value: "httproute/default/shop" } }], units }),
  ]);
  t.after(() => proxy.close());
  const filter: LogFilter = { level: "info", modules: new Map() };
  const server = await startAdminServer({
    address: { host: "127.0.0.1", port: 0 },
    ...(token === undefined ? {} : { token: () => Promise.resolve(token) }),
    state: async () => configDump(await proxy.state(), { config: {}, applied: new AppliedUpdates() }),
    explain: (name) => proxy.explain(name),
    explainGateway: (name) => proxy.explainGateway(name),
    console: () => Promise.resolve({}),
    watch: (options) => proxy.watch(options),
    tasks: () => proxy.tasks(),
    profile: (request, signal) => proxy.profile(request, signal),
    filter,
    log: createLogger(filter, () => undefined),
    drain: () => Promise.resolve(),
    quit: () => undefined,
  });
  t.after(() => server.close());
  return { url, port, adminPort: Number(server.address.split(":").at(-1)) };
}
