/**
 * Reads the native paths of the Gemini API and of Vertex AI, which name model and method. The formats of their clients
 * and the choice of a GwModel use it.
 */
import { decodePathText, readPathModel } from "./model-name.ts";

interface NativePath {
  /** With its collection when that is not `models`. */
  readonly model: string;
  readonly method: string;
}

/** The version in front tells where the name begins when a prefix of the route has a segment `models` too. */
const VERSIONED =
  /\/v\d[a-z0-9]*(?:\/projects\/[^/]+\/locations\/[^/]+)?(?:\/publishers\/[^/]+)?\/(models|tunedModels)\//;
const UNVERSIONED = /\/(models|tunedModels)\//;

/**
 * Clients write the names of all vendors as they are: `models/meta/llama-4:generateContent`, and with a colon too.
 * @param path without the query
 * @returns undefined for another path; a name that is not properly encoded stays as it is, and is no safe one
 */
export function readNativePath(path: string): NativePath | undefined {
  const colon = path.lastIndexOf(":");
  const method = path.slice(colon + 1);
  const beginning = VERSIONED.exec(path) ?? UNVERSIONED.exec(path);
  if (colon === -1 || beginning === null || !/^[A-Za-z]+$/.test(method)) return undefined;
  const name = decodePathText(path.slice(beginning.index + beginning[0].length, colon));
  if (name === "") return undefined;
  return { model: beginning[1] === "models" ? name : `tunedModels/${name}`, method };
}

/** Methods that are called with bodies of Anthropic, which may name the model themselves. */
const RAW_PREDICT = new Set(["rawPredict", "streamRawPredict"]);

/**
 * Returns the model that a client asks for: in paths of Gemini the one of the path, in those of raw predictions the one
 * of the body where there is one.
 * @param path without the query
 * @param named in the body
 * @throws ProxyError llm_model_invalid for a name that is not safe in a path
 */
export function modelOf(path: string, named: string | undefined): string | undefined {
  const native = readNativePath(path);
  if (native === undefined || (named !== undefined && RAW_PREDICT.has(native.method))) return named;
  return readPathModel(native.model);
}
