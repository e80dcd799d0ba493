/** What `gwproxy validate` warns of in `auth` of backends: blocks that work and that their author may regret. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { validateText } from "../../support/gateway/validated.ts";

function manifest(auth: string): string {
  return `apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: web}
spec:
  static: {host: web.example.com, port: 443}
  policies: {tls: {}, auth: ${auth}}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {Authorization: a, clientSecret: b}
`;
}

const IN_QUERY = /a credential in a query is shown in logs/;
const END = `clientAuth: {clientId: c, method: ClientSecretPost, secretRef: {name: s}}`;

const WARNED: readonly (readonly [auth: string, path: string, message: RegExp])[] = [
  ["{secretRef: {name: s}, location: {queryParameter: {name: t}}}", "location.queryParameter", IN_QUERY],
  [
    "{credentials: [{location: {queryParameter: {name: t}}, secretRef: {name: s}}]}",
    "credentials[0].location.queryParameter",
    IN_QUERY,
  ],
  [
    "{oauthTokenExchange: {url: https://as.example.com, location: {queryParameter: {name: t}}}}",
    "oauthTokenExchange.location.queryParameter",
    IN_QUERY,
  ],
  [
    `{crossAppAccess: {identityProvider: {url: https://idp.example.com, ${END}}, resourceAuthorizationServer: {url: https://as.example.com, ${END}}, audience: a, scopes: [read], accessTokenScopes: [read, write]}}`,
    "crossAppAccess.accessTokenScopes",
    /scopes does not hold write; most servers refuse such a request/,
  ],
];

for (const [auth, path, message] of WARNED)
  test(`a warning names ${path}`, async (t) => {
    const { code, text } = await validateText(t, manifest(auth), { schemaOnly: false });
    assert.equal(code, 0, text);
    assert.ok(text.includes(`warning: GwBackend default/web: spec.policies.auth.${path}: `), text);
    assert.match(text, message);
    assert.ok(text.endsWith("0 errors, 1 warning\n"), text);
  });

test("a credential in a header is nothing to warn of", async (t) => {
  const { text } = await validateText(t, manifest("{secretRef: {name: s}}"), { schemaOnly: false });
  assert.equal(text, "0 errors, 0 warnings\n");
});
