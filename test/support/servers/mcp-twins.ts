/**
 * The server of test/support/python/mcp_server.py once more, with each of the official SDKs: 1.x for versions with sessions,
 * 2.x for 2026-07-28.
 */
import { completable as completableInput } from "@modelcontextprotocol/sdk/server/completable.js";
import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CreateMessageResultSchema, ListRootsResultSchema } from "@modelcontextprotocol/sdk/types.js";
import {
  completable,
  inputRequired,
  inputResponse,
  McpServer as RequestMcpServer,
  ResourceTemplate as RequestResourceTemplate,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { ProofContext } from "../proofs/prove.ts";
import { startMcpServer } from "./mcp-server.ts";
import { startModernMcpServer } from "./modern-mcp-server.ts";

const NAMES = ["anna", "anton", "berta"];
const startingWith = (value: string | undefined): string[] => NAMES.filter((name) => name.startsWith(value ?? ""));
const content = (text: string) => ({ content: [{ type: "text" as const, text }] });
const greeting = (text: string) => ({
  messages: [{ role: "user" as const, content: { type: "text" as const, text } }],
});
const COLOR = { type: "object" as const, properties: { color: { type: "string" as const } }, required: ["color"] };
const question = (text: string) => ({
  messages: [{ role: "user" as const, content: { type: "text" as const, text } }],
  maxTokens: 10,
});

/** Starts the twin of versions with sessions; returns its port. */
export async function startSessionTwin(context: Pick<ProofContext, "after">, name: string): Promise<number> {
  return (await startMcpServer(context, { create: () => createSessionTwin(name) })).port;
}

function createSessionTwin(name: string): McpServer {
  const server = new McpServer({ name, version: "1.0.0" }, { capabilities: { logging: {} } });
  server.registerTool("echo", { inputSchema: { text: z.string() } }, ({ text }) => content(`${name}: ${text}`));
  server.registerTool("count", { inputSchema: { to: z.number() } }, async ({ to }, { _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken ?? "";
    for (let progress = 1; progress <= to; progress++)
      await sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: to } });
    return content(`counted to ${to}`);
  });
  server.registerTool("say", { inputSchema: { text: z.string() } }, async ({ text }, { sendNotification }) => {
    await sendNotification({ method: "notifications/message", params: { level: "info", data: text } });
    return content("said");
  });
  server.registerTool("ask_model", { inputSchema: { prompt: z.string() } }, async ({ prompt }, { sendRequest }) => {
    const request = { method: "sampling/createMessage" as const, params: question(prompt) };
    const answer = await sendRequest(request, CreateMessageResultSchema);
    return content(`model: ${answer.content.type === "text" ? answer.content.text : ""}`);
  });
  server.registerTool("ask_user", { inputSchema: { question: z.string() } }, async ({ question: message }) => {
    const answer = await server.server.elicitInput({ message, requestedSchema: COLOR });
    return content(`user: ${String(answer.content?.["color"])}`);
  });
  server.registerTool("ask_roots", {}, async ({ sendRequest }) => {
    const { roots } = await sendRequest({ method: "roots/list" }, ListRootsResultSchema);
    return content(roots.map(({ uri }) => uri).join(" "));
  });
  const argsSchema = { who: completableInput(z.string(), startingWith) };
  server.registerPrompt("greet", { argsSchema }, ({ who }) => greeting(`hello ${who} from ${name}`));
  server.registerResource("note", "note://shared/1", {}, ({ href }) => ({
    contents: [{ uri: href, text: `note of ${name}` }],
  }));
  const template = new ResourceTemplate("page://shared/{number}", {
    list: undefined,
    complete: { number: startingWith },
  });
  server.registerResource("page", template, {}, ({ href }, { number }) => ({
    contents: [{ uri: href, text: `page ${String(number)} of ${name}` }],
  }));
  return server;
}

/** Starts the twin of 2026-07-28; returns its port. */
export async function startRequestTwin(context: Pick<ProofContext, "after">, name: string): Promise<number> {
  return (await startModernMcpServer(context, name, (server) => configureRequestTwin(server, name))).port;
}

/** Adds the tools that the helper's server lacks; it has `echo` already. */
function configureRequestTwin(server: RequestMcpServer, name: string): void {
  server.server.registerCapabilities({ logging: {} });
  server.registerTool("count", { inputSchema: z.object({ to: z.number() }) }, async ({ to }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken ?? "";
    for (let progress = 1; progress <= to; progress++)
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, total: to } });
    return content(`counted to ${to}`);
  });
  server.registerTool("say", { inputSchema: z.object({ text: z.string() }) }, async ({ text }, { mcpReq }) => {
    await mcpReq.log("info", text);
    return content("said");
  });
  server.registerTool("ask_model", { inputSchema: z.object({ prompt: z.string() }) }, ({ prompt }, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "question");
    if (answer.kind !== "sampling")
      return inputRequired({ inputRequests: { question: inputRequired.createMessage(question(prompt)) } });
    const said = answer.result.content;
    return content(`model: ${"text" in said ? said.text : ""}`);
  });
  server.registerTool("ask_user", { inputSchema: z.object({ question: z.string() }) }, (input, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "question");
    if (answer.kind === "elicit") return content(`user: ${String(answer.content?.["color"])}`);
    const elicited = inputRequired.elicit({ message: input.question, requestedSchema: COLOR });
    return inputRequired({ inputRequests: { question: elicited } });
  });
  server.registerTool("ask_roots", { inputSchema: z.object({}) }, (_input, { mcpReq }) => {
    const answer = inputResponse(mcpReq.inputResponses, "question");
    if (answer.kind === "roots") return content(answer.roots.map(({ uri }) => uri).join(" "));
    return inputRequired({ inputRequests: { question: inputRequired.listRoots() } });
  });
  const argsSchema = z.object({ who: completable(z.string(), startingWith) });
  server.registerPrompt("greet", { argsSchema }, ({ who }) => greeting(`hello ${who} from ${name}`));
  server.registerResource("note", "note://shared/1", {}, ({ href }) => ({
    contents: [{ uri: href, text: `note of ${name}` }],
  }));
  const template = new RequestResourceTemplate("page://shared/{number}", {
    list: undefined,
    complete: { number: startingWith },
  });
  server.registerResource("page", template, {}, ({ href }, { number }) => ({
    contents: [{ uri: href, text: `page ${String(number)} of ${name}` }],
  }));
}
