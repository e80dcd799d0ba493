/** Starts a data plane without a translator, configured with handmade resources, and raw sockets to talk to it. */
import { connect, type Socket } from "node:net";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BackendSchema,
  BackendSettingsSchema,
  BindSchema,
  EndpointsSchema,
  HttpVersion,
  HttpMatchSchema,
  HttpRouteSchema,
  HttpRuleSchema,
  ObjectRefSchema,
  ListenerSchema,
  PolicySchema,
  Protocol,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { createProxy, type Proxy, type ProxyOptions } from "../../../src/proxy/proxy.ts";
import { recordingLog } from "./silent-log.ts";

export const BIND = "80/default/gw";
export const LISTENER = "default/gw.http";
const GATEWAY = create(ObjectRefSchema, { kind: "Gateway", namespace: "default", name: "gw" });

export function bind(key: string = BIND, port = 80): Resource {
  return resourceOf("Bind", create(BindSchema, { key, gateway: GATEWAY, port, protocol: Protocol.HTTP }));
}

export function listener(hostname = "", key: string = LISTENER): Resource {
  const name = key.slice(key.lastIndexOf(".") + 1);
  const message = { key, bind: BIND, gateway: GATEWAY, name, hostname, protocol: Protocol.HTTP };
  return resourceOf("Listener", create(ListenerSchema, message));
}

export type Rule = MessageInitShape<typeof HttpRuleSchema>;

export function route(name: string, rules: Rule[], hostnames: string[] = [], parent: string = LISTENER): Resource {
  return resourceOf(
    "HttpRoute",
    create(HttpRouteSchema, {
      key: `httproute/default/${name}`,
      object: create(ObjectRefSchema, { kind: "HTTPRoute", namespace: "default", name }),
      parents: [{ listener: parent, hostnames }],
      rules,
    }),
  );
}

export function prefix(value: string): MessageInitShape<typeof HttpMatchSchema>[] {
  return [{ path: { case: "prefix", value } }];
}

/** Returns a rule that sends every request to the backend. */
export function to(backend: string, more: Omit<Rule, "$typeName"> = {}): Rule {
  return { matches: prefix("/"), backends: [{ weight: 1, backend: `backend/default/${backend}` }], ...more };
}

export function staticBackend(
  name: string,
  port: number,
  settings?: MessageInitShape<typeof BackendSettingsSchema>,
  host = "127.0.0.1",
): Resource {
  return resourceOf(
    "Backend",
    create(BackendSchema, {
      key: `backend/default/${name}`,
      object: create(ObjectRefSchema, { kind: "GwBackend", namespace: "default", name }),
      kind: { case: "static", value: { host, port } },
      ...(settings === undefined ? {} : { settings }),
    }),
  );
}

export function serviceBackend(
  key: string,
  port: number,
  version: HttpVersion = HttpVersion.UNSPECIFIED,
  settings?: MessageInitShape<typeof BackendSettingsSchema>,
): Resource {
  const kind = { case: "service", value: { hostname: "svc.local", port, version } } as const;
  return resourceOf("Backend", create(BackendSchema, { key, kind, ...(settings === undefined ? {} : { settings }) }));
}

export function endpoints(key: string, ports: readonly number[]): Resource {
  const list = ports.map((port) => ({ address: "127.0.0.1", port, ready: true }));
  return resourceOf("Endpoints", create(EndpointsSchema, { key, endpoints: list }));
}

export function policy(name: string, message: MessageInitShape<typeof PolicySchema>): Resource {
  return resourceOf(
    "Policy",
    create(PolicySchema, {
      key: `policy/default/${name}`,
      object: create(ObjectRefSchema, { kind: "GwPolicy", namespace: "default", name }),
      ...message,
    }),
  );
}

export interface DataPlane {
  readonly proxy: Proxy;
  readonly port: number;
  readonly url: string;
  set(...resources: Resource[]): Promise<void>;
}

/** Starts a data plane with the standard Bind; every resource must be accepted. */
export async function startDataPlane(resources: Resource[], options: Partial<ProxyOptions> = {}): Promise<DataPlane> {
  const proxy = createProxy({ bindAddress: "127.0.0.1", log: recordingLog().log, ports: () => 0, ...options });
  const set = async (...changed: Resource[]): Promise<void> => {
    const { refused } = await proxy.apply({ set: changed, removed: [] });
    if (refused.length > 0) throw new Error(`refused: ${JSON.stringify(refused)}`);
  };
  await set(bind(), ...resources);
  const port = proxy.listeners()[0]?.boundPort ?? 0;
  return { proxy, port, url: `http://127.0.0.1:${port}`, set };
}

export interface RawClient {
  readonly socket: Socket;
  /** Returns everything received so far. */
  text(): string;
  /** Resolves when the text matches; rejects when the connection closes before. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves with everything that was received when the server closes. */
  closed(): Promise<string>;
}

/** Returns an LLM backend that speaks the chat completions format. @param section name of its provider */
export function modelBackend(name: string, port: number, model = "", section = ""): Resource {
  const formats = [{ type: "Completions", path: "" }];
  const provider = { name: section, key: "custom", identity: "custom", host: "127.0.0.1", port, model, formats };
  return resourceOf(
    "Backend",
    create(BackendSchema, {
      key: `backend/default/${name}`,
      object: create(ObjectRefSchema, { kind: "GwBackend", namespace: "default", name }),
      kind: { case: "ai", value: { groups: [{ providers: [provider] }] } },
    }),
  );
}

/** Opens a connection that sends exactly the given bytes. */
export function rawClient(port: number, bytes = ""): RawClient {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  let text = "";
  const ended = new Promise<string>((resolve) => {
    socket.on("close", () => resolve(text));
  });
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    socket.emit("text");
  });
  if (bytes !== "") socket.write(bytes, "latin1");
  return {
    socket,
    text: () => text,
    closed: () => ended,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(text);
          if (found === null) return;
          socket.off("text", look);
          resolve(found);
        };
        socket.on("text", look);
        void ended.then((all) => reject(new Error(`closed before ${String(pattern)}: ${JSON.stringify(all)}`)));
        look();
      }),
  };
}
