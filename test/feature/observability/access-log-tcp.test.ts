/** `frontend.accessLog` for connections of bytes: a line at their end, with the filter, the preset and what is added. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import tls from "node:tls";
import { createAuthority, createLeaf } from "../../../src/lib/certificates/x509.ts";
import { startEcho } from "../../support/servers/echo.ts";
import {
  documents,
  gatewayOf,
  gatewayPolicy,
  pemObject,
  startGateway,
  staticBackend,
} from "../../support/gateway/gateway.ts";
import { keepLines, type KeptLines } from "../../support/gateway/log-lines.ts";
import { prove, type ProofContext } from "../../support/proofs/prove.ts";
import { validNow } from "../../support/servers/tls-upstream.ts";

const FIELD = "GwPolicy spec.frontend.accessLog";
const AUTHORITY = createAuthority("test", validNow());
const SERVER = createLeaf(AUTHORITY, ["localhost"], validNow());
const GATEWAY = gatewayOf([
  "{name: tcp, port: 5432, protocol: TCP}",
  "{name: end, port: 9443, protocol: TLS, tls: {certificateRefs: [{name: own}]}}",
]);
const ROUTE = `
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: db}
spec:
  parentRefs: [{name: gw, sectionName: tcp}, {name: gw, sectionName: end}]
  rules: [{backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: db}]}]
`;
const REQUEST = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

interface Served extends KeptLines {
  readonly backendPort: number;
  /** One connection and its answer. @returns the client's port */
  talk(): Promise<number>;
  talkOverTls(): Promise<void>;
}

async function serve(context: ProofContext, accessLog: string): Promise<Served> {
  const echo = await startEcho(context);
  const lines = keepLines(context);
  const objects = [
    GATEWAY,
    pemObject("Secret", "own", { "tls.crt": SERVER.certificate, "tls.key": SERVER.key }),
    staticBackend("db", echo.port),
    ROUTE,
    gatewayPolicy("log", `  frontend: {accessLog: ${accessLog}}`),
  ];
  const gateway = await startGateway(context, documents(...objects), { telemetry: { accessLog: lines.accessLog } });
  const portOf = (listener: number): number => Number(new URL(gateway.url(listener)).port);
  return {
    ...lines,
    backendPort: echo.port,
    async talk() {
      const socket = connect(portOf(5432), "127.0.0.1");
      await once(socket, "connect");
      const { localPort = 0 } = socket;
      socket.resume().end(REQUEST);
      await once(socket, "close");
      return localPort;
    },
    async talkOverTls() {
      const socket = tls.connect({
        port: portOf(9443),
        host: "127.0.0.1",
        servername: "localhost",
        ca: AUTHORITY.certificate,
      });
      await once(socket, "secureConnect");
      socket.resume().end(REQUEST);
      await once(socket, "close");
    },
  };
}

prove(`${FIELD}.filter`, "a connection gets a line when the filter is true of it", async (context) => {
  const { talk, talkOverTls, nextFields } = await serve(context, `{filter: 'proxy.listener.name == "end"'}`);
  await talk();
  await talkOverTls();
  const fields = await nextFields();
  assert.deepEqual([fields["listener"], fields["tls.sni"]], ["end", "localhost"]);
});

prove(`${FIELD}.filter`, "a filter about requests holds for no connection", async (context) => {
  const { talk, nextFields, talkOverTls } = await serve(
    context,
    `{filter: 'request.path != "" || proxy.listener.name == "end"'}`,
  );
  await talk();
  await talkOverTls();
  assert.equal((await nextFields())["listener"], "end");
});

const ADDED = ["attributes.add[].name", "attributes.add[].expression", "attributes.remove[]"];

prove(
  ADDED.map((field) => `${FIELD}.${field}`),
  "what is added to the line of a connection reads the connection, its route and its backend",
  async (context) => {
    const add = [
      `{name: client, expression: source.port}`,
      `{name: where, expression: 'proxy.gateway.name + "/" + proxy.route.name + "/" + proxy.route.rule'}`,
      `{name: kind, expression: 'backend.name + " " + backend.type + " " + backend.protocol'}`,
      `{name: path, expression: request.path}`,
    ];
    const policy = `{attributes: {add: [${add.join(", ")}], remove: [src.addr, gateway]}}`;
    const { talk, nextFields, backendPort } = await serve(context, policy);
    const port = await talk();
    const { time, duration, ...fields } = await nextFields();
    assert.deepEqual([typeof time, typeof duration], ["string", "string"]);
    assert.deepEqual(fields, {
      level: "info",
      scope: "request",
      listener: "tcp",
      route_rule: "0",
      route: "default/db",
      endpoint: `127.0.0.1:${backendPort}`,
      protocol: "tcp",
      client: port,
      where: "gw/db/0",
      kind: "default/db static tcp",
    });
  },
);

prove(`${FIELD}.preset`, "the preset Otel names the fields of a connection too", async (context) => {
  const { talkOverTls, nextFields, backendPort } = await serve(context, "{preset: Otel}");
  await talkOverTls();
  const fields = await nextFields();
  assert.deepEqual(
    ["tls.server.name", "server.port", "gwp.protocol", "client.address", "tls.sni"].map((name) => fields[name]),
    ["localhost", backendPort, "tcp", "127.0.0.1", undefined],
  );
});
