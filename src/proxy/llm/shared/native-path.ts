/** Reads the paths of the Gemini API and of Vertex AI, which name model and method. The formats of their clients use it. */

export interface GeminiPath {
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
 * @param path without the query @returns undefined for another path, or a name that is not properly encoded
 */
export function readGeminiPath(path: string): GeminiPath | undefined {
  const colon = path.lastIndexOf(":");
  const method = path.slice(colon + 1);
  const beginning = VERSIONED.exec(path) ?? UNVERSIONED.exec(path);
  if (colon === -1 || beginning === null || !/^[A-Za-z]+$/.test(method)) return undefined;
  const name = decode(path.slice(beginning.index + beginning[0].length, colon));
  if (name === undefined || name === "") return undefined;
  return { model: beginning[1] === "models" ? name : `tunedModels/${name}`, method };
}

function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
