/**
 * Answers `GET /v1/models` and `GET /v1/models/<id>` in a form that the clients of OpenAI and of Anthropic read, the
 * members of both side by side; and the same below `/v1beta` in the form of Google. The handler of models uses it.
 */
import { HeaderList } from "../../../lib/header-list.ts";
import { ProxyError } from "../../exchange/errors.ts";
import type { Reply } from "../../exchange/exchange.ts";
import type { JsonObject } from "../shared/json.ts";
import { decodePathText } from "../shared/model-name.ts";
import type { ConcreteModel, VirtualModel } from "./compile.ts";

/** Owner of models that this gateway makes up itself. */
const VIRTUAL_OWNER = "gwproxy";

const PATH = /^(?:\/v1(?:beta)?)?\/models(?:\/(.+?))?\/*$/;

type Listed = ConcreteModel | VirtualModel;

/**
 * @param path without the query
 * @throws ProxyError model_not_found
 */
export function listModels(path: string, models: readonly Listed[]): Reply {
  return answerList(path, models, { printList, printModel });
}

/**
 * @param path without the query
 * @throws ProxyError model_not_found
 */
export function listGeminiModels(path: string, models: readonly Listed[]): Reply {
  return answerList(path, models, {
    printList: (all) => ({ models: all.map(printGeminiModel) }),
    printModel: printGeminiModel,
  });
}

interface ListForm {
  printList(models: readonly Listed[]): JsonObject;
  printModel(model: Listed): JsonObject;
}

function answerList(path: string, models: readonly Listed[], form: ListForm): Reply {
  const id = PATH.exec(path)?.[1];
  if (id === undefined) return replyWith(form.printList(models));
  const name = decodePathText(id);
  const found = models.find(({ match }) => match === name);
  if (found === undefined) throw new ProxyError("model_not_found", { text: `model "${name}" not found` });
  return replyWith(form.printModel(found));
}

function printList(models: readonly Listed[]): JsonObject {
  return {
    object: "list",
    data: models.map(printModel),
    has_more: false,
    first_id: models[0]?.match ?? null,
    last_id: models.at(-1)?.match ?? null,
  };
}

function printModel(model: Listed): JsonObject {
  const { match, createdAtMs } = model;
  return {
    id: match,
    object: "model",
    created: Math.floor(createdAtMs / 1000),
    owned_by: "endpoint" in model ? model.endpoint.node.identity : VIRTUAL_OWNER,
    type: "model",
    display_name: match,
    created_at: new Date(createdAtMs).toISOString(),
  };
}

/** Says what clients ask before they call a model; the gateway does not know the limits of its tokens. */
function printGeminiModel({ match }: Listed): JsonObject {
  return {
    name: `models/${match}`,
    displayName: match,
    supportedGenerationMethods: ["generateContent", "streamGenerateContent", "countTokens"],
  };
}

function replyWith(body: JsonObject): Reply {
  const headers = new HeaderList(["content-type", "application/json"]);
  return { status: 200, headers, body: Buffer.from(JSON.stringify(body)), upstream: false };
}
