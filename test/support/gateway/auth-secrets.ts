/** Random secrets for every place of `auth` that holds one, for tests that look for them where they should not be. */
import { generateKeyPairSync } from "node:crypto";
import { seededRandom } from "../fixtures/seed.ts";
import { secret } from "./backend-auth.ts";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Hands out random texts, and remembers what each was for. */
export class Secrets {
  readonly all: Map<string, string> = new Map();
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  make(what: string): string {
    const text = Array.from({ length: 24 }, () => LETTERS[Math.floor(this.#random() * LETTERS.length)]).join("");
    this.all.set(what, text);
    return text;
  }

  /** A private key, whose lines are the secret. @param what also used for a text that only looks like a key */
  makeKey(what: string): string {
    const pem = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" });
    this.all.set(what, String(pem).split("\n")[5] ?? "");
    return String(pem);
  }

  /** Returns the secrets that a text holds, as they are or in a form that is read as easily. */
  findIn(text: string): string[] {
    return [...this.all]
      .filter(([, value]) =>
        [value, Buffer.from(value).toString("base64").slice(0, 30), Buffer.from(value).toString("hex")].some((form) =>
          text.includes(form),
        ),
      )
      .map(([what]) => what);
  }
}

interface SecretBlocks {
  /** Flow YAML of `auth` by the name of a backend. */
  readonly auth: Readonly<Record<string, string>>;
  readonly objects: readonly string[];
  /** Names of the blocks that cannot be translated. */
  readonly broken: readonly string[];
}

/** Returns a block for each place of a secret, and some whose secrets cannot be used. @param url of the token endpoint */
export function secretBlocks(secrets: Secrets, url: string): SecretBlocks {
  const client = `clientAuth: {clientId: c, secretRef: {name: client}}`;
  const account = {
    type: "service_account",
    client_email: "robot@p.test",
    private_key: secrets.makeKey("key of a service account"),
    private_key_id: "k1",
    token_uri: `${url}/google`,
  };
  return {
    auth: {
      inline: `{key: ${secrets.make("inline key")}}`,
      entry: "{secretRef: {name: entry}}",
      query: "{secretRef: {name: entry}, location: {queryParameter: {name: t}}}",
      further: "{credentials: [{location: {cookie: {name: c}}, secretRef: {name: further}}]}",
      "cloud-a": "{cloudA: {secretRef: {name: aws}, region: eu-west-1}}",
      "cloud-b": "{cloudB: {secretRef: {name: entra}}}",
      "cloud-c": "{cloudC: {secretRef: {name: robot}}}",
      signed: "{jwtSign: {signingKeyRef: {name: signing}}}",
      exchanged: `{oauthTokenExchange: {url: "${url}/token", ${client}}}`,
      crossed: `{crossAppAccess: {identityProvider: {url: "${url}/idp", ${client}}, resourceAuthorizationServer: {url: "${url}/as", ${client}}, audience: a}}`,
      broken: "{jwtSign: {signingKeyRef: {name: broken}}}",
      wrong: "{cloudC: {secretRef: {name: wrong}}}",
      half: "{cloudB: {secretRef: {name: half}}}",
      locked: `{oauthTokenExchange: {url: "${url}/token", clientAuth: {clientId: c, method: PrivateKeyJwt, privateKeyJwt: {signingKeyRef: {name: locked}, assertionAudience: a}}}}`,
      chain: `{oauthTokenExchange: {url: "${url}/token", clientAuth: {clientId: c, method: PrivateKeyJwt, privateKeyJwt: {signingKeyRef: {name: signing}, assertionAudience: a, certificateRef: {name: chain}, certificateHeader: x5c}}}}`,
    },
    broken: ["broken", "wrong", "half", "locked", "chain"],
    objects: [
      secret("entry", { Authorization: secrets.make("entry of a Secret") }),
      secret("further", { Authorization: secrets.make("further credential") }),
      secret("aws", {
        accessKey: "AKIDSTATIC",
        secretKey: secrets.make("secret key of cloud A"),
        sessionToken: secrets.make("session token"),
      }),
      secret("entra", { tenantId: "t", clientId: "c", clientSecret: secrets.make("client secret of cloud B") }),
      secret("robot", { "credentials.json": JSON.stringify(account) }),
      secret("signing", { signingKey: secrets.makeKey("signing key") }),
      secret("client", { clientSecret: secrets.make("client secret") }),
      secret("broken", { signingKey: `-----BEGIN PRIVATE KEY-----\n${secrets.make("broken key")}\n` }),
      secret("half", { tenantId: "t", clientSecret: secrets.make("client secret without its client") }),
      secret("locked", {
        signingKey: `-----BEGIN ENCRYPTED PRIVATE KEY-----\n${secrets.make("encrypted key")}\n-----END ENCRYPTED PRIVATE KEY-----\n`,
      }),
      secret("chain", {
        certificate: `-----BEGIN CERTIFICATE-----\n${secrets.make("broken certificate")}\n-----END CERTIFICATE-----\n`,
      }),
      secret("wrong", { "credentials.json": `{"type": "${secrets.make("credential file")}` }),
    ],
  };
}
