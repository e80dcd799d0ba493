/** The kind `cloudB`: an access token of Microsoft Entra, fetched for the scope of the destination and kept. */
import type { AuthKind } from "../auth-kind.ts";
import { checkAmbientHost } from "../shared/ambient-hosts.ts";
import { placeBearer } from "../shared/bearer-token.ts";
import { CLOUD_TIMEOUT_MS } from "../shared/cloud-client.ts";
import type { AuthCall } from "../../../upstream/auth.ts";
import { fetchToken } from "./sources.ts";

const MARGIN_MS = 60_000;
/** One entry for each scope. */
const MAX_ENTRIES = 8;
const FOUNDRY = ".services.ai.azure.com";

export const cloudB: AuthKind<"cloudB"> = {
  compile({ source }, { tokens, place, block, cloud: client, environment }) {
    const cache = tokens.cache<string>({
      kind: "cloudB",
      place,
      block,
      marginMs: MARGIN_MS,
      maxEntries: MAX_ENTRIES,
      timeoutMs: CLOUD_TIMEOUT_MS,
    });
    const checkDestination = (call: AuthCall): void => {
      if (source.case !== "secret") checkAmbientHost("cloudB", call, environment);
    };
    return {
      checkDestination,
      place(call, headers, path) {
        checkDestination(call);
        const { caller, host } = call;
        const resource = host.endsWith(FOUNDRY) ? "https://ai.azure.com" : "https://cognitiveservices.azure.com";
        const token = cache.get(resource, caller, () => fetchToken(source, resource, { client, environment, caller }));
        return placeBearer(token, headers, path);
      },
    };
  },
};
