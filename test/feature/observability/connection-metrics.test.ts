/** What the metrics say about the connections of clients, whatever they carry. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:tls";
import { test, type TestContext } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  BindSchema,
  ListenerSchema,
  ObjectRefSchema,
  Protocol,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { Resource } from "../../../src/ir/resource.ts";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import {
  BIND,
  bind,
  LISTENER,
  listener,
  rawClient,
  route,
  startDataPlane,
  staticBackend,
  to,
} from "../../support/gateway/data-plane.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";
import { startUpstream } from "../../support/servers/upstream.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

interface Served {
  readonly port: number;
  /** Of the Bind; undefined: not counted yet. */
  value(name: string, protocol: string): number | undefined;
}

async function serve(t: TestContext, ...resources: readonly Resource[]): Promise<Served> {
  const upstream = await startUpstream((_request, response) => void response.end("ok"));
  const metrics = createMetrics("test");
  const objects = [...resources, route("r", [to("b")]), staticBackend("b", upstream.port)];
  const { proxy, port } = await startDataPlane(objects, { telemetry: { metrics } });
  t.after(async () => {
    proxy.close();
    await upstream.close();
  });
  return {
    port,
    value(name, protocol) {
      const labels = `bind="${BIND}",gateway="default/gw",listener="unknown",protocol="${protocol}"`;
      const line = metrics
        .print("prometheus")
        .split("\n")
        .find((each) => each.startsWith(`gwproxy_${name}{${labels}} `));
      return line === undefined ? undefined : Number(line.split(" ").at(-1));
    },
  };
}

/** The counts come when the connection is over on the gateway's side too. */
async function until(check: () => boolean): Promise<void> {
  while (!check()) await new Promise((resolve) => setImmediate(resolve));
}

test("connections and their bytes are counted for each Bind", async (t) => {
  const { port, value } = await serve(t, bind(), listener());
  const answers = [await rawClient(port, GET).closed(), await rawClient(port, GET).closed()];
  await until(() => value("downstream_sent_bytes_total", "http") === answers.join("").length);
  assert.equal(value("downstream_connections_total", "http"), 2);
  assert.equal(value("downstream_received_bytes_total", "http"), 2 * GET.length);
});

test("behind TLS the bytes are those on the wire", async (t) => {
  const authority = createAuthority("test", validNow());
  const { certificate: certificatePem, key: privateKeyPem } = createLeaf(authority, ["a.test"], validNow());
  const gateway = create(ObjectRefSchema, { kind: "Gateway", namespace: "default", name: "gw" });
  const protocol = Protocol.HTTPS;
  const { port, value } = await serve(
    t,
    resourceOf("Bind", create(BindSchema, { key: BIND, gateway, port: 80, protocol })),
    resourceOf(
      "Listener",
      create(ListenerSchema, {
        key: LISTENER,
        bind: BIND,
        gateway,
        name: "a",
        protocol,
        tls: { certificatePem, privateKeyPem },
      }),
    ),
  );
  const socket = connect({ port, host: "127.0.0.1", servername: "a.test", ca: authority.certificate });
  socket.resume();
  socket.write(GET.replace("Host: a", "Host: a.test"));
  await once(socket, "close");
  await until(() => value("downstream_sent_bytes_total", "https") !== undefined);
  assert.equal(value("downstream_connections_total", "https"), 1);
  assert.equal(value("tls_handshake_duration_seconds_count", "https"), 1);
  assert.ok((value("downstream_received_bytes_total", "https") ?? 0) > GET.length + 300);
  assert.ok((value("downstream_sent_bytes_total", "https") ?? 0) > certificatePem.length / 2);
});
