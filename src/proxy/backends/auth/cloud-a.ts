/** The kind `cloudA`: requests are signed with Signature Version 4, each attempt anew. */
import { findAwsCredentials } from "../aws-credentials.ts";
import { signRequest } from "../sigv4.ts";
import type { AuthKind } from "./auth-kind.ts";

const DEFAULT_SERVICE = "bedrock";

export const cloudA: AuthKind<"cloudA"> = {
  compile: (credential) => ({
    sign({ host }, request, backend) {
      const service = credential.service || backend?.service || DEFAULT_SERVICE;
      const region = credential.region || backend?.region || "";
      signRequest(request, findAwsCredentials(credential, host), { region, service }, Date.now());
    },
  }),
};
