/** Reads `tools` and `toolConfig` of a Gemini request. `read-request.ts` uses it. */
import type { Tool, ToolChoice } from "../../conversation/conversation.ts";
import type { JsonObject } from "../../shared/json.ts";
import { readObject, readObjects, readText, requireList, requireText } from "../../shared/request-fields.ts";
import { readSchema } from "./read-schema.ts";
import { memberOf } from "./member.ts";

export function readTools(body: JsonObject): Tool[] {
  return readObjects(body["tools"], "tools").flatMap((tool, at) => {
    const path = `tools[${at}]`;
    const declared = readObjects(memberOf(tool, "functionDeclarations"), `${path}.functionDeclarations`);
    const functions = declared.map((each, index) => readFunction(each, `${path}.functionDeclarations[${index}]`));
    return [...functions, ...readServerTools(tool, path)];
  });
}

function readFunction(declared: JsonObject, path: string): Tool {
  const description = readText(declared["description"], `${path}.description`);
  const parameters = readObject(declared["parameters"], `${path}.parameters`);
  const jsonSchema = memberOf(declared, "parametersJsonSchema");
  const schema =
    parameters === undefined
      ? readObject(jsonSchema, `${path}.parametersJsonSchema`)
      : readSchema(parameters, `${path}.parameters`);
  return {
    kind: "function",
    name: requireText(declared["name"], `${path}.name`),
    schema: schema ?? { type: "object", properties: {} },
    ...(description === undefined ? {} : { description }),
  };
}

/** Tools that Google runs, such as `googleSearch`; each is a member of its own. */
function readServerTools(tool: JsonObject, path: string): Tool[] {
  return Object.entries(tool).flatMap(([name, value]) =>
    /^function_?declarations$/i.test(name) || value === null
      ? []
      : [{ kind: "vendor", vendor: "google", name, value: { [name]: value }, path: `${path}.${name}` }],
  );
}

export function readToolChoice(body: JsonObject): ToolChoice | undefined {
  const config = readObject(memberOf(body, "toolConfig"), "toolConfig");
  const path = "toolConfig.functionCallingConfig";
  const calling = readObject(config === undefined ? undefined : memberOf(config, "functionCallingConfig"), path);
  if (calling === undefined) return undefined;
  switch (readText(calling["mode"], `${path}.mode`)?.toUpperCase()) {
    case "NONE":
      return { kind: "none" };
    case "ANY": {
      const names = memberOf(calling, "allowedFunctionNames") ?? [];
      const allowed = requireList(names, `${path}.allowedFunctionNames`).map((name, at) =>
        requireText(name, `${path}.allowedFunctionNames[${at}]`),
      );
      return allowed.length === 0 ? { kind: "required" } : { kind: "required", names: allowed };
    }
    case undefined:
      return undefined;
    default:
      return { kind: "auto" };
  }
}
