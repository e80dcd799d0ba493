/** Finds where a call to a provider goes, for tables of addresses. */
import assert from "node:assert/strict";
import type { Provider as ProviderNode } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../src/lib/header-list.ts";
import { compileEndpoint, type Endpoint } from "../../../src/proxy/llm/call/endpoint.ts";
import type { Wire } from "../../../src/proxy/llm/providers/provider.ts";
import { aiBackend, fakeUpstream, testDeps, TestExchange, type ProviderInit } from "./llm-harness.ts";

export interface Call {
  readonly wire?: Wire;
  readonly model?: string;
  /** Path and query of the client. */
  readonly target?: string;
  readonly headers?: readonly string[];
  readonly streaming?: boolean;
}

interface Located {
  readonly url: string;
  readonly host: string | undefined;
  readonly sent: HeaderList;
  readonly node: ProviderNode;
  readonly endpoint: Endpoint;
}

/** Returns where a call goes, as `scheme://host:port/path`, and its headers. */
export function locate(
  provider: ProviderInit,
  { wire = "Completions", model = "m", target = "/v1/x", headers = [], streaming = false }: Call = {},
): Located {
  const node = aiBackend(provider).groups[0]?.providers[0] as ProviderNode; // aiBackend makes one provider
  const deps = testDeps(fakeUpstream(() => assert.fail("nothing is sent")));
  const endpoint = compileEndpoint(node, deps);
  const exchange = new TestExchange(Buffer.alloc(0), new HeaderList([...headers]));
  exchange.target = target;
  const to = { wire, model, streaming };
  const addressed = endpoint.address(to, exchange, undefined);
  assert.ok(!(addressed instanceof Promise), "a configured credential is there at once");
  const { path, headers: sent } = addressed;
  const unsigned = { method: "POST", path, headers: sent, body: Buffer.alloc(0) };
  void endpoint.auth?.sign?.(endpoint.authCall(to, exchange), unsigned);
  const spot = endpoint.spot(to, exchange);
  assert.ok(!(spot instanceof Promise) && spot.pool === undefined, "a provider with an address of its own");
  const { target: called } = spot;
  const scheme = called.tls === undefined ? "http" : "https";
  return { url: `${scheme}://${called.host}:${called.port}${path}`, host: sent.get("host"), sent, node, endpoint };
}
