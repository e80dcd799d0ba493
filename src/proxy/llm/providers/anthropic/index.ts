/** The provider `llme`: the Anthropic messages API. */
import type { HeaderList } from "../../../../lib/header-list.ts";
import type { Provider } from "../provider.ts";
import { standardPath } from "../shared/standard-path.ts";

/** Version of the API that translated requests speak, and clients that name none. */
const API_VERSION = "2023-06-01";

export const anthropic: Provider = {
  defaultHost: () => "api.anthropic.com",
  formats: () => ["Messages", "MessagesTokenCount"],
  operations: () => ["Models"],
  path: standardPath,
  headers(headers, { credentialHeader }) {
    removeBrowserHeaders(headers);
    setApiVersion(headers);
    placeKey(headers, credentialHeader);
  },
};

/** Sets the version when the client brought none. `anthropic-beta` passes unchanged. */
export function setApiVersion(headers: HeaderList): void {
  if (headers.get("anthropic-version") === undefined) headers.set("anthropic-version", API_VERSION);
}

/**
 * API keys travel in x-api-key; OAuth tokens and explicitly placed credentials stay in place. Only one of both is sent.
 */
function placeKey(headers: HeaderList, credentialHeader: string | undefined): void {
  if (credentialHeader === "x-api-key") return headers.remove("authorization");
  const token = /^bearer(?:\s+(.*))?$/i.exec(headers.get("authorization") ?? "");
  if (credentialHeader !== undefined || token?.[1]?.startsWith("sk-ant-oat") === true)
    return headers.remove("x-api-key");
  if (token === null) return;
  headers.remove("authorization");
  headers.set("x-api-key", token[1] ?? "");
}

/** Removes fields of browsers, because the API refuses calls that look like those of a browser. */
function removeBrowserHeaders(headers: HeaderList): void {
  for (let at = headers.raw.length - 2; at >= 0; at -= 2) {
    const name = (headers.raw[at] as string).toLowerCase();
    if (name === "origin" || name.startsWith("sec-fetch-") || name.startsWith("access-control-request-"))
      headers.raw.splice(at, 2);
  }
}
