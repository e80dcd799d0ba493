/**
 * The handler of agents that are hosted by Bedrock AgentCore. It addresses every request to the runtime and leaves
 * sending and signing to the handler of plain HTTP; what the client and the agent say to each other passes. The registry
 * creates it.
 *
 *     client   POST /team/rpc?x=1
 *     runtime  POST /runtimes/arn%3Aaws%3A…/invocations?qualifier=prod
 */
import { create } from "@bufbuild/protobuf";
import {
  BackendAuthSchema,
  BackendSettingsSchema,
  BackendTlsSchema,
  StaticBackendSchema,
  type AgentRuntimeBackend,
  type BackendSettings,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { percentEncode } from "../../lib/percent-encode.ts";
import { createCardHandler } from "../a2a/handler.ts";
import { findCardSuffix } from "../a2a/classify.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { BackendHandler } from "./handler.ts";
import { staticDestination, type Destination, type DestinationDeps } from "./http-handler.ts";

const HTTPS = 443;
const SERVICE = "bedrock-agentcore";
/** Where a runtime shows the card of an agent that speaks A2A. */
const CARD_PATH = "/.well-known/agent-card.json";

/** TLS, and signatures with the keys in the environment, where the configuration does not say otherwise. */
export const AGENT_RUNTIME_DEFAULTS: BackendSettings = create(BackendSettingsSchema, {
  tls: create(BackendTlsSchema),
  auth: create(BackendAuthSchema, { kind: { case: "cloudA", value: {} } }),
});

export function agentRuntimeDestination(
  { host, region }: AgentRuntimeBackend,
  settings: BackendSettings,
  deps: DestinationDeps,
): Destination {
  return {
    ...staticDestination(create(StaticBackendSchema, { host, port: HTTPS }), settings, deps),
    fixesHost: true,
    signingScope: { region, service: SERVICE },
  };
}

/** @param http sends and signs a request for the path that the exchange has */
export function createAgentRuntimeHandler(
  { arn, qualifier }: AgentRuntimeBackend,
  http: BackendHandler,
): BackendHandler {
  const path = `/runtimes/${encodeArn(arn)}/invocations`;
  const query = qualifier === "" ? "" : `?qualifier=${percentEncode(qualifier)}`;
  const invocation = path + query;
  const card = path + CARD_PATH + query;
  const withCards = createCardHandler(http, CARD_PATH);
  return function agentRuntime(exchange) {
    if (exchange.connect) throw new ProxyError("backend_unfit", { detail: "CONNECT to an agent runtime" });
    exchange.target = findCardSuffix(exchange) === undefined ? invocation : card;
    return withCards(exchange);
  };
}

/** Percent-encodes all but letters and digits: the service takes the ARN as one segment of the path. */
function encodeArn(arn: string): string {
  return arn.replaceAll(
    /[^A-Za-z0-9]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`,
  );
}
