/** The kinds `key` and `secretRef`: a credential that is known beforehand. */
import type { AuthKind } from "./auth-kind.ts";
import { placeCredential } from "./shared/place-credential.ts";

export const key: AuthKind<"key"> = {
  compile: (credential) => ({ place: (_call, headers, path) => placeCredential(credential, headers, path) }),
};
