/** What expressions see of a request (`request`, `source`, `proxy`), made when an expression asks and not before. */
import { HeaderView } from "../../cel/header-view.ts";
import { AttributeMap } from "../../cel/values.ts";
import type { Exchange } from "./exchange.ts";

type Reader = (exchange: Exchange) => unknown;

const EMPTY = Buffer.alloc(0);

const REQUEST: ReadonlyMap<string, Reader> = new Map<string, Reader>([
  ["method", ({ method }) => method],
  ["uri", ({ scheme, host, target }) => `${scheme}://${host}${target}`],
  ["path", ({ target }) => pathOf(target)],
  ["pathAndQuery", ({ target }) => target],
  ["host", ({ host }) => host],
  ["scheme", ({ scheme }) => scheme],
  ["version", ({ version }) => version],
  ["headers", ({ requestHeaders }) => new HeaderView(requestHeaders)],
  ["body", capturedBody],
  ["bodyPrefix", capturedBody],
  ["startTime", ({ startedAt }) => startedAt],
]);

export class RequestAttributes extends AttributeMap {
  readonly #exchange: Exchange;

  constructor(exchange: Exchange) {
    super();
    this.#exchange = exchange;
  }

  override get(name: string): unknown {
    return REQUEST.get(name)?.(this.#exchange);
  }

  override has(name: string): boolean {
    return REQUEST.has(name);
  }

  override names(): string[] {
    return [...REQUEST.keys()];
  }
}

/** null: it was not captured, or is larger than may be held. */
function capturedBody({ requestBody }: Exchange): Uint8Array | null {
  if (requestBody === null) return EMPTY;
  return Buffer.isBuffer(requestBody) ? requestBody : null;
}

export function sourceRoot({ source }: Exchange): unknown {
  return { address: source.address, port: source.port, rawAddress: source.address, rawPort: source.port };
}

export function proxyRoot({ listener, route }: Exchange): unknown {
  return {
    bind: listener.bind,
    gateway: { namespace: listener.namespace, name: listener.gateway },
    listener: { name: listener.name },
    ...(route === undefined ? {} : { route: { ...route } }),
  };
}

export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}
