/** The kind `cloudC`: an access token or an ID token of Google Cloud, fetched for its audience and kept. */
import { isIP } from "node:net";
import type { AuthKind } from "../auth-kind.ts";
import { checkAmbientHost } from "../shared/ambient-hosts.ts";
import { placeBearer, unusable } from "../shared/bearer-token.ts";
import { CLOUD_TIMEOUT_MS } from "../shared/cloud-client.ts";
import type { AuthCall } from "../../../upstream/auth.ts";
import { fetchGoogleToken } from "./sources.ts";

const MARGIN_MS = 60_000;
const MAX_AUDIENCES = 256;

export const cloudC: AuthKind<"cloudC"> = {
  compile({ idToken, audience, credentialsJson }, { tokens, place, block, cloud: client, environment }) {
    const cache = tokens.cache<string>({
      kind: "cloudC",
      place,
      block,
      marginMs: MARGIN_MS,
      maxEntries: MAX_AUDIENCES,
      timeoutMs: CLOUD_TIMEOUT_MS,
    });
    const audienceOf = (host: string): string => {
      if (!idToken || audience !== "") return audience;
      if (isIP(host) !== 0) throw unusable("an ID token for an address needs an audience");
      return `https://${host}`;
    };
    const checkDestination = (call: AuthCall): void => {
      if (credentialsJson === "") checkAmbientHost("cloudC", call, environment);
    };
    return {
      checkDestination,
      place(call, headers, path) {
        checkDestination(call);
        const { caller, host } = call;
        const wanted = { idToken, audience: audienceOf(host) };
        const token = cache.get(wanted.audience, caller, () =>
          fetchGoogleToken(credentialsJson, wanted, { client, environment, caller }),
        );
        return placeBearer(token, headers, path);
      },
    };
  },
};
