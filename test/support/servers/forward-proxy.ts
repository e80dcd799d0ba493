/**
 * A small forward proxy for tunnels (CONNECT) and requests in absolute form. It records its requests, and a test can
 * make it refuse tunnels.
 */
import { createServer, request as sendRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, type AddressInfo, type Socket } from "node:net";
import type { ProofContext } from "../proofs/prove.ts";

export interface ForwardProxy {
  readonly port: number;
  /** Requests as "CONNECT host:port" and "GET http://host:port/path", oldest first. */
  readonly asked: string[];
  /** Value of Proxy-Authorization for each of those requests; "" for none. */
  readonly shown: string[];
  /** All connections, below TLS if there is any: those of clients and those to upstreams. */
  readonly sockets: ReadonlySet<Socket>;
  /** Complete answer to the next CONNECTs, in place of a tunnel. */
  refusal: string | undefined;
}

export interface ForwardProxyOptions {
  /** Certificate of the proxy; with it, the proxy is behind TLS. */
  readonly pair?: { readonly certificate: string; readonly key: string };
  /** Names that the proxy resolves, with their locations as "host:port". */
  readonly places?: Readonly<Record<string, string>>;
}

export async function startForwardProxy(
  context: Pick<ProofContext, "after">,
  { pair, places = {} }: ForwardProxyOptions = {},
): Promise<ForwardProxy> {
  const asked: string[] = [];
  const shown: string[] = [];
  const sockets = new Set<Socket>();
  const note = (request: IncomingMessage): void => {
    asked.push(`${request.method} ${request.url}`);
    shown.push(request.headers["proxy-authorization"] ?? "");
  };
  const pass = (request: IncomingMessage, response: ServerResponse): void => {
    note(request);
    const { protocol, host, hostname, port, pathname, search } = new URL(request.url ?? "");
    const place = places[port === "" ? `${hostname}:80` : host] ?? host;
    const { "proxy-authorization": _ours, ...headers } = request.headers;
    const outgoing = sendRequest(`${protocol}//${place}${pathname}${search}`, { method: request.method, headers });
    outgoing.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    outgoing.on("error", () => void response.writeHead(502).end());
    request.pipe(outgoing);
  };
  const server =
    pair === undefined ? createServer(pass) : createSecureServer({ cert: pair.certificate, key: pair.key }, pass);
  const proxy: ForwardProxy = { port: 0, asked, shown, sockets, refusal: undefined };
  server.on("connect", (request: IncomingMessage, client: Socket) => {
    note(request);
    client.on("error", () => client.destroy());
    if (proxy.refusal !== undefined) {
      client.end(proxy.refusal);
      return;
    }
    const [host = "", port = ""] = (places[request.url ?? ""] ?? request.url ?? "").split(/:(?=\d+$)/);
    const upstream = connect(Number(port), host.replace(/^\[|\]$/g, ""));
    upstream.on("error", () => client.destroy());
    upstream.on("connect", () => {
      client.write("HTTP/1.1 200 Connection established\r\nVia: 1.1 test\r\n\r\n");
      client.pipe(upstream);
      upstream.pipe(client);
    });
    sockets.add(upstream);
    client.on("close", () => upstream.destroy());
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return Object.assign(proxy, { port: (server.address() as AddressInfo).port }); // a TCP server has such an address
}
