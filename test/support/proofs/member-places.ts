/** Members of a backend that hold a block of settings of their own, so that one proof covers each kind of them. */
import { call, type Answer } from "../clients/http.ts";
import { INITIALIZE, post } from "../clients/mcp.ts";
import { INITIALIZED } from "../fixtures/mcp-initialized.ts";
import { startEcho } from "../servers/echo.ts";
import { startMcpServer } from "../servers/mcp-server.ts";
import type { ProofContext } from "./prove.ts";

export interface Member {
  readonly host?: string;
  readonly port: number;
  /** Flow YAML of its policies. */
  readonly block: string;
}

export interface MemberPlace {
  readonly kind: "provider" | "MCP target";
  /** Returns "GwBackend spec.mcp.targets[].static.policies.tcp" for "tcp". */
  field(name: string): string;
  /** Returns a GwBackend with the one member. */
  backend(name: string, member: Member): string;
  /** Sends a request that reaches the member. @param url of the route, without a slash at its end */
  ask(url: string): Promise<Answer>;
  /** Path of that request at the member. */
  readonly path: string;
  /** Starts a server that can answer it. */
  start(context: ProofContext): Promise<{ readonly port: number }>;
  /** Body of an answer, as JSON. */
  readonly answer: string;
  /** Status with which a member that cannot be reached is answered. */
  readonly refusal: number;
  /** Texts in the answers for a connection and for an answer that take too long. */
  readonly late: readonly [connection: string, answer: string];
}

function backend(name: string, spec: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec: {${spec}}
`;
}

const CHAT = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });

export const MEMBER_PLACES: readonly MemberPlace[] = [
  {
    kind: "provider",
    field: (name) => `GwBackend spec.ai.groups[].providers[].policies.${name}`,
    backend: (name, { host = "127.0.0.1", port, block }) =>
      backend(
        name,
        `ai: {groups: [{providers: [{name: one, llma: {}, host: ${host}, port: ${port}, policies: {${block}}}]}]}`,
      ),
    ask: (url) => call(`${url}/`, { method: "POST", headers: { "content-type": "application/json" }, body: CHAT }),
    path: "/v1/chat/completions",
    start: (context) => startEcho(context),
    answer: "{}",
    refusal: 503,
    late: ["upstream call timeout", "upstream call timeout"],
  },
  {
    kind: "MCP target",
    field: (name) => `GwBackend spec.mcp.targets[].static.policies.${name}`,
    backend: (name, { host = "127.0.0.1", port, block }) =>
      backend(name, `mcp: {targets: [{name: one, static: {host: ${host}, port: ${port}, policies: {${block}}}}]}`),
    ask: (url) => post(`${url}/mcp`, INITIALIZE),
    path: "/mcp",
    start: (context) => startMcpServer(context),
    answer: INITIALIZED,
    refusal: 500,
    late: ["the server cannot be reached", "upstream call timeout"],
  },
];
