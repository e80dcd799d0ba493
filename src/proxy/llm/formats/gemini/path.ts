/** Reads the paths of the Gemini API and of Gemini on Vertex AI, which name model and method. */

export interface GeminiPath {
  /** With its collection when that is not `models`. */
  readonly model: string;
  readonly method: string;
}

const PATH = /\/(models|tunedModels)\/([^/]+):([A-Za-z]+)$/;

/** @param path without the query @returns undefined for another path, or a name that is not properly encoded */
export function readGeminiPath(path: string): GeminiPath | undefined {
  const [, collection, encoded, method] = PATH.exec(path) ?? [];
  const name = encoded === undefined ? undefined : decode(encoded);
  if (name === undefined || method === undefined) return undefined;
  return { model: collection === "models" ? name : `tunedModels/${name}`, method };
}

function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
