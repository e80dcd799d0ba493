/** Backends that are a server of this machine, and requests for them: read by the tests of gateways that are asked for themselves. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BackendSchema,
  HttpVersion,
  type BackendSettingsSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { endpoints, serviceBackend, staticBackend } from "../../support/gateway/data-plane.ts";

export function dynamicBackend(settings?: MessageInitShape<typeof BackendSettingsSchema>): Resource {
  return resourceOf(
    "Backend",
    create(BackendSchema, {
      key: "backend/default/b",
      kind: { case: "dynamic", value: {} },
      ...(settings === undefined ? {} : { settings }),
    }),
  );
}

export function aiBackend(port: number): Resource {
  const provider = { name: "p", key: "llma", host: "127.0.0.1", port, identity: "openai" };
  return resourceOf(
    "Backend",
    create(BackendSchema, {
      key: "backend/default/b",
      kind: { case: "ai", value: { groups: [{ providers: [provider] }] } },
    }),
  );
}

export const KEY = "backend/default/b";

/** The backend `b` that is the gateway itself, by the port of its listener. */
export const WAYS: Readonly<Record<string, (port: number) => Resource[]>> = {
  "a static backend": (port) => [staticBackend("b", port)],
  "a static backend with a name": (port) => [staticBackend("b", port, undefined, "localhost")],
  "a static backend over HTTP/2": (port) => [staticBackend("b", port, { http: { version: HttpVersion.HTTP2 } })],
  "a Service": (port) => [serviceBackend(KEY, port), endpoints(KEY, [port])],
  "a Service over HTTP/2": (port) => [serviceBackend(KEY, port, HttpVersion.HTTP2), endpoints(KEY, [port])],
  "a backend whose transformation removes the field": (port) => [
    staticBackend("b", port, { transformation: { request: { remove: ["cdn-loop"] } } }),
  ],
  "a backend whose transformation writes the field": (port) => [
    staticBackend("b", port, { transformation: { request: { set: [{ name: "CDN-Loop", expression: '"other"' }] } } }),
  ],
  "a proxy that is the gateway": (port) => [
    staticBackend("b", 9, { tunnel: { proxy: { place: { case: "backend", value: "backend/default/proxy" } } } }),
    staticBackend("proxy", port),
  ],
};

const BODY = '{"model":"m","messages":[{"role":"user","content":"hi"}]}';
export const POST: string =
  `POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${BODY.length}\r\n\r\n${BODY}`;
export const UPGRADE = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
