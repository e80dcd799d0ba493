/** Requests and answers of the embedding models of Bedrock, each in the dialect of its vendor. */

type Members = Record<string, unknown>;

/** @param url holds the name of the model @returns what is wrong with the body */
export function findInvokeFault(body: Members, url: string): string | undefined {
  if (url.includes("cohere.embed")) return findCohereFault(body);
  if (url.includes("nova") && url.includes("embed")) return findNovaFault(body);
  return url.includes("titan-embed") ? findTitanFault(body) : "not an embedding model";
}

function findUnknown(body: Members, names: string): string | undefined {
  const unknown = Object.keys(body).filter((name) => !names.split(" ").includes(name));
  return unknown.length === 0 ? undefined : `extraneous key [${unknown.join(", ")}] is not permitted`;
}

function findTitanFault(body: Members): string | undefined {
  if (typeof body["inputText"] !== "string") return "inputText must be a text";
  return findUnknown(body, "inputText dimensions normalize embeddingTypes");
}

const COHERE_TYPES = ["search_document", "search_query", "classification", "clustering", "image"];

function findCohereFault(body: Members): string | undefined {
  const { texts, input_type } = body;
  if (!Array.isArray(texts) || texts.length === 0 || texts.some((text) => typeof text !== "string"))
    return "texts must be a list of texts";
  if (!COHERE_TYPES.includes(String(input_type))) return "input_type is not known";
  return findUnknown(body, "texts input_type truncate embedding_types output_dimension");
}

function findNovaFault(body: Members): string | undefined {
  const { taskType, singleEmbeddingParams } = body;
  const { embeddingPurpose, text } = (singleEmbeddingParams ?? {}) as { embeddingPurpose?: string; text?: Members };
  if (taskType !== "SINGLE_EMBEDDING" || embeddingPurpose === undefined) return "taskType and embeddingPurpose";
  if (typeof text?.["value"] !== "string" || !["START", "END", "NONE"].includes(String(text["truncationMode"])))
    return "singleEmbeddingParams.text";
  return findUnknown(body, "schemaVersion taskType singleEmbeddingParams");
}

interface Printed {
  readonly output: object;
  readonly headers: Record<string, string>;
}

export function printEmbedding(body: Members, url: string): Printed {
  const headers = { "x-amzn-bedrock-input-token-count": "6" };
  if (url.includes("titan-embed")) return { output: { embedding: [0.25, -0.5], inputTextTokenCount: 5 }, headers };
  if (url.includes("nova")) {
    return { output: { embeddings: [{ embeddingType: "TEXT", embedding: [0.5, 0.125] }] }, headers };
  }
  const texts = body["texts"] as readonly string[]; // findInvokeFault has checked it
  const floats = texts.map((_, at) => [at, 0.5]);
  const embeddings = body["embedding_types"] === undefined ? floats : { float: floats };
  return { output: { embeddings, id: "e-1", response_type: "embeddings_floats", texts }, headers };
}
