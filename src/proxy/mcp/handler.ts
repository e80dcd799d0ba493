/**
 * The handler of MCP backends, the end of the pipeline: compiles the targets for their place and joins the client side
 * with the virtual server that the multiplexer makes of them. The registry creates one per place; sessions and open
 * streams outlive it.
 */
import type { McpBackend } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { RecentMap } from "../../lib/recent-map.ts";
import type { BackendDeps, BackendHandler } from "../backends/handler.ts";
import { ProxyError } from "../exchange/errors.ts";
import { authenticateCallers } from "./authentication.ts";
import { compileMcpAuthorization } from "./authorization.ts";
import { isLegacySse, LegacySse } from "./client-side/legacy-sse.ts";
import { StreamableHttp } from "./client-side/streamable-http.ts";
import { compileGuardrails } from "./guardrails/guardrails.ts";
import { Naming } from "./multiplex/naming/names.ts";
import type { Server } from "./multiplex/server.ts";
import { OpenStreams } from "./multiplex/streams/open-streams.ts";
import { createVirtualServer } from "./multiplex/virtual-server.ts";
import type { Session } from "./session/session.ts";
import type { Sessions } from "./session/sessions.ts";
import { compileTarget } from "./targets/compile-target.ts";
import type { Target } from "./targets/target.ts";

/** @throws ProxyError policy_refused when a policy on a target is broken */
export function createMcpHandler(backend: McpBackend, deps: BackendDeps): BackendHandler {
  const { mcp } = deps.settings("", undefined);
  const authorize = compileMcpAuthorization(mcp?.authorization, deps.expression);
  const targets = backend.targets.map((node) => compileTarget(node, deps));
  const naming = new Naming<Target>(backend.prefixMode, targets);
  const multiplexer = createVirtualServer({
    backend: deps.owner,
    naming,
    failOpen: backend.failOpen,
    stateless: backend.stateless,
    seal: deps.sessions.seal,
    streams: streamsOf(deps),
    authorize: (exchange) => authorize?.(exchange),
    guard: compileGuardrails(mcp?.guardrails ?? [], deps),
  });
  const { only } = naming;
  const isSessionOptional = only !== undefined && !only.isPinned;
  const issuedId = (session: Session): boolean => only !== undefined && session.target(only.name).id !== undefined;
  const options = {
    multiplexer,
    sessions: deps.sessions,
    backend: deps.owner,
    isStateless: backend.stateless,
    isSessionOptional,
    needsSession: (session: Session) => !isSessionOptional || issuedId(session),
  };
  const client = new StreamableHttp(options);
  const legacy = new LegacySse(options);
  return authenticateCallers(mcp?.authentication, deps, function mcp(exchange) {
    if (exchange.connect) throw new ProxyError("backend_unfit", { detail: "CONNECT to an MCP server" });
    return isLegacySse(exchange) ? legacy.answer(exchange) : client.answer(exchange);
  });
}

/** Places whose open streams adopt a changed backend; those of former places end with their clients. */
const MAX_PLACES = 4_096;

/** Open streams of each thread, by place. */
const openStreams = new WeakMap<Sessions, RecentMap<string, OpenStreams<Server>>>();

function streamsOf({ sessions, place }: BackendDeps): OpenStreams<Server> {
  let places = openStreams.get(sessions);
  if (places === undefined) openStreams.set(sessions, (places = new RecentMap(MAX_PLACES)));
  let streams = places.get(place);
  if (streams === undefined) places.set(place, (streams = new OpenStreams()));
  return streams;
}
