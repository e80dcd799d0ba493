/**
 * Tools of a Responses request. Providers of other formats know only functions, so a custom tool becomes a function
 * with one text (conversation/free-text.ts), and a tool in a namespace gets the name of the namespace in front.
 * `ClientTools` finds the original of a call in the answer.
 */
import { printCallId } from "../../conversation/call-id.ts";
import type { CallPart, FunctionTool, ToolChoice } from "../../conversation/conversation.ts";
import { freeTextFunction, unwrapFreeText, type InputGrammar } from "../../conversation/free-text.ts";
import { listOf, objectOf, stringOf, type Json, type JsonObject } from "../../shared/json.ts";
import {
  invalidRequest,
  readBoolean,
  readObject,
  readObjects,
  readText,
  requireObject,
  requireText,
} from "../../shared/request-fields.ts";

/** @throws ProxyError llm_request_invalid for a tool that OpenAI runs itself */
export function readTools(tools: Json | undefined, path: string): FunctionTool[] {
  return readObjects(tools, path).flatMap((tool, at) => readTool(tool, `${path}[${at}]`));
}

function readTool(tool: JsonObject, path: string): FunctionTool[] {
  const type = requireText(tool["type"], `${path}.type`);
  if (type !== "namespace") return [readNamedTool(tool, type, path)];
  const namespace = requireText(tool["name"], `${path}.name`);
  return readObjects(tool["tools"], `${path}.tools`).map((member, at) => {
    const place = `${path}.tools[${at}]`;
    const made = readNamedTool(member, requireText(member["type"], `${place}.type`), place);
    return { ...made, name: qualifiedName(made.name, namespace) };
  });
}

function readNamedTool(tool: JsonObject, type: string, path: string): FunctionTool {
  if (type !== "function" && type !== "custom")
    throw invalidRequest(`${path}: the tool ${JSON.stringify(type)} cannot be translated for this provider`);
  const name = requireText(tool["name"], `${path}.name`);
  const description = readText(tool["description"], `${path}.description`);
  if (type === "custom") return freeTextFunction(name, description, readGrammar(tool, path));
  const schema = readObject(tool["parameters"], `${path}.parameters`) ?? { type: "object", properties: {} };
  const strict = readBoolean(tool["strict"], `${path}.strict`);
  return {
    kind: "function",
    name,
    schema,
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
  };
}

function readGrammar(tool: JsonObject, path: string): InputGrammar | undefined {
  const format = readObject(tool["format"], `${path}.format`);
  const definition = readText(format?.["definition"], `${path}.format.definition`);
  if (definition === undefined) return undefined;
  return { definition, syntax: readText(format?.["syntax"], `${path}.format.syntax`) };
}

/** Returns the name of a tool for providers without namespaces. */
export function qualifiedName(name: string, namespace: string | undefined): string {
  return namespace === undefined || namespace === "" ? name : `${namespace}__${name}`;
}

interface ChosenTools {
  readonly choice?: ToolChoice;
  /** Names of the only tools that the model may call; undefined without such a limit. */
  readonly allowed?: ReadonlySet<string>;
}

/** @throws ProxyError llm_request_invalid for the choice of a tool that OpenAI runs itself */
export function readToolChoice(choice: Json | undefined): ChosenTools {
  if (choice === undefined || choice === null) return {};
  if (choice === "auto" || choice === "none" || choice === "required") return { choice: { kind: choice } };
  if (typeof choice === "string") throw invalidRequest("tool_choice must be auto, required, none or an object");
  const chosen = requireObject(choice, "tool_choice");
  const type = requireText(chosen["type"], "tool_choice.type");
  if (type === "allowed_tools") return readAllowedTools(chosen);
  return { choice: { kind: "required", names: [chosenName(chosen, type, "tool_choice")] } };
}

function readAllowedTools(chosen: JsonObject): ChosenTools {
  const mode = requireText(chosen["mode"], "tool_choice.mode");
  if (mode !== "auto" && mode !== "required") throw invalidRequest("tool_choice.mode must be auto or required");
  const names = readObjects(chosen["tools"], "tool_choice.tools").map((tool, at) => {
    const path = `tool_choice.tools[${at}]`;
    return chosenName(tool, requireText(tool["type"], `${path}.type`), path);
  });
  return { choice: { kind: mode }, allowed: new Set(names) };
}

function chosenName(tool: JsonObject, type: string, path: string): string {
  if (type !== "function" && type !== "custom")
    throw invalidRequest(`${path}: the tool ${JSON.stringify(type)} cannot be translated for this provider`);
  const name = requireText(tool["name"], `${path}.name`);
  return qualifiedName(name, readText(tool["namespace"], `${path}.namespace`));
}

interface ClientTool {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly isCustom: boolean;
}

/** The custom tools and the tools in namespaces of a request; calls of all others are printed as they are. */
export class ClientTools {
  readonly #tools = new Map<string, ClientTool>();

  constructor(request: JsonObject) {
    this.#add(request["tools"]);
    for (const item of listOf(request["input"])) {
      const fields = objectOf(item);
      if (fields?.["type"] === "additional_tools") this.#add(fields["tools"]);
    }
  }

  isCustom(name: string): boolean {
    return this.#tools.get(name)?.isCustom === true;
  }

  /** Prints a call as an item. @param text its arguments @param itemId identifier without its prefix */
  printCall(
    call: Pick<CallPart, "id" | "name" | "signature">,
    text: string,
    itemId: string,
    status: string,
  ): JsonObject {
    const tool = this.#tools.get(call.name);
    const named = {
      name: tool?.name ?? call.name,
      ...(tool?.namespace === undefined ? {} : { namespace: tool.namespace }),
    };
    return tool?.isCustom === true
      ? {
          id: `ctc_${itemId}`,
          type: "custom_tool_call",
          status,
          call_id: printCallId(call),
          ...named,
          input: unwrapFreeText(text),
        }
      : { id: `fc_${itemId}`, type: "function_call", status, call_id: printCallId(call), ...named, arguments: text };
  }

  #add(tools: Json | undefined, namespace?: string): void {
    for (const item of listOf(tools)) {
      const tool = objectOf(item);
      const name = stringOf(tool?.["name"]);
      if (tool === undefined || name === undefined) continue;
      const isCustom = tool["type"] === "custom";
      if (tool["type"] === "namespace" && namespace === undefined) this.#add(tool["tools"], name);
      else if (isCustom || namespace !== undefined)
        this.#tools.set(qualifiedName(name, namespace), { name, namespace, isCustom });
    }
  }
}
