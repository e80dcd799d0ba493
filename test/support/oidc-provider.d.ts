/** Types of the part of oidc-provider that tests use; the package has none. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  /** What a grant reads and answers: a context of Koa. */
  export interface GrantContext {
    readonly oidc: {
      readonly params: Readonly<Record<string, string | readonly string[] | undefined>>;
      /** The client that authenticated itself. */
      readonly client: GrantClient;
    };
    body: unknown;
  }

  interface GrantClient {
    readonly clientId: string;
  }

  interface ClientToken {
    readonly clientId: string;
    readonly expiration: number;
    resourceServer: object;
    scope: string | undefined;
    /** Returns the token. */
    save(): Promise<string>;
  }

  interface ClientTokens {
    new (members: { readonly client: GrantClient }): ClientToken;
    /** Returns undefined for a token that this provider does not know, or that has ended. */
    find(token: string): Promise<ClientToken | undefined>;
  }

  export class Provider {
    readonly ClientCredentials: ClientTokens;
    readonly ResourceServer: new (identifier: string, members: object) => object;
    constructor(issuer: string, configuration: object);
    callback(): RequestListener;
    /** @param dupes parameters that may be there several times */
    registerGrantType(
      name: string,
      handler: (context: GrantContext) => Promise<void>,
      parameters: readonly string[],
      dupes?: readonly string[],
    ): void;
  }

  export const errors: {
    /** Answered with status 400. */
    readonly InvalidGrant: new (detail: string) => Error;
    readonly InvalidRequest: new (detail: string) => Error;
  };
}
