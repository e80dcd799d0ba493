/**
 * Measures policies: microseconds of processor time that each one alone adds to a request, on the exchange of the data
 * plane and with warm caches. No socket is involved.
 */
import { hash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AuthenticationMode,
  AuthorizationAction,
  LimitKind,
  TrafficUnitSchema,
} from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { createPasswordChecker } from "../../src/lib/password/checker.ts";
import type { Reply, RoutedExchange } from "../../src/proxy/exchange/exchange.ts";
import { PolicySet } from "../../src/proxy/policies/policy-set.ts";
import type { Middleware } from "../../src/proxy/policies/policy.ts";
import { makeDeps } from "../support/gateway/exchange.ts";
import { createIssuer } from "../support/fixtures/tokens.ts";
import { answer, exchangeOf, microseconds, PLAIN } from "./in-process.ts";
import { printTable } from "./report.ts";

type UnitInit = NonNullable<MessageInitShape<typeof TrafficUnitSchema>["unit"]>;

interface Load {
  readonly title: string;
  readonly units: readonly UnitInit[];
  /** Headers of the request besides the common ones. */
  readonly headers?: readonly string[];
  readonly method?: string;
}

export async function policyTable(): Promise<string> {
  const passwords = createPasswordChecker();
  const deps = makeDeps();
  const policies = new PolicySet({ ...deps, nowMs: () => performance.now(), passwords });
  const nothing = await cost([], { title: "", units: [] });
  const rows: string[][] = [];
  for (const load of await loads()) {
    const chain = load.units.map(
      (unit) => policies.compileUnit(create(TrafficUnitSchema, { unit }).unit, "policy/default/bench").middleware,
    );
    const base = load.headers === undefined ? nothing : await cost([], load);
    rows.push([load.title, ((await cost(chain, load)) - base).toFixed(2)]);
  }
  passwords.close();
  return printTable(["policy", "µs"], rows);
}

async function loads(): Promise<Load[]> {
  const issuer = await createIssuer("https://issuer.test", { alg: "RS256" });
  const jwk = { id: issuer.jwk.kid ?? "", jwkJson: JSON.stringify(issuer.jwk) };
  const location = { location: { case: "header", value: { name: "x-key", prefix: "" } } } as const;
  const mode = AuthenticationMode.STRICT;
  const users = [{ name: "ann", passwordHash: "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=" }];
  const providers = [{ issuer: issuer.name, keys: [jwk], requiredClaims: ["exp"] }];
  const bearer = [
    "authorization",
    `Bearer ${await issuer.token({ email: "ann@example.com", groups: ["eng", "ops"] })}`,
  ];
  const basic = ["authorization", `Basic ${Buffer.from("ann:secret").toString("base64")}`];
  const key = ["x-key", "bench-key-0123456789"];
  const page = ["origin", "https://app.example"];

  const jwtUnit: UnitInit = { case: "jwtAuthentication", value: { mode, providers } };
  const keys = [{ sha256: hash("sha256", "bench-key-0123456789", "buffer"), metadataJson: '{"group":"writers"}' }];
  const keyUnit: UnitInit = { case: "apiKeyAuthentication", value: { mode, keys, location } };
  const rule = { action: AuthorizationAction.REQUIRE, expressions: ['apiKey.group == "writers"'] };
  const free = { action: AuthorizationAction.REQUIRE, expressions: ['request.method == "GET"'] };
  const limit = { limit: 1_000_000_000, unitMs: 1000, kind: LimitKind.REQUESTS, key: "request.host" };
  const limitUnit: UnitInit = { case: "localRateLimit", value: { rules: [limit] } };
  const atBasic = { location: { case: "header", value: { name: "authorization", prefix: "Basic " } } } as const;
  return [
    { title: "jwtAuthentication, seen token", units: [jwtUnit], headers: bearer },
    { title: "apiKeyAuthentication", units: [keyUnit], headers: key },
    {
      title: "basicAuthentication, seen user",
      units: [{ case: "basicAuthentication", value: { mode, realm: "bench", users, location: atBasic } }],
      headers: basic,
    },
    { title: "authorization, one expression", units: [{ case: "authorization", value: { rules: [free] } }] },
    { title: "rateLimit.local by key", units: [limitUnit] },
    {
      title: "token, key, authorization and limit together",
      units: [jwtUnit, keyUnit, { case: "authorization", value: { rules: [rule] } }, limitUnit],
      headers: [...bearer, ...key],
    },
    {
      title: "cors, answer for a page",
      units: [{ case: "cors", value: { allowOrigins: ["https://app.example"], allowCredentials: true } }],
      headers: page,
    },
    {
      title: "csrf, listed origin",
      units: [{ case: "csrf", value: { additionalOrigins: ["https://app.example"] } }],
      headers: page,
      method: "POST",
    },
    {
      title: "headerModifiers, two of the request",
      units: [
        { case: "headerModifiers", value: { request: { set: [{ name: "x-a", value: "1" }], remove: ["accept"] } } },
      ],
    },
    { title: "timeouts", units: [{ case: "timeouts", value: { requestMs: 30_000 } }] },
  ];
}

/** Returns the microseconds per request. */
async function cost(chain: readonly Middleware<RoutedExchange>[], load: Load): Promise<number> {
  const headers = [...PLAIN, ...(load.headers ?? [])];
  const method = load.method ?? "GET";
  // The first request fills the caches: it verifies the signature or the password.
  await request(chain, headers, method);
  return microseconds(() => void request(chain, headers, method));
}

function request(
  chain: readonly Middleware<RoutedExchange>[],
  headers: readonly string[],
  method: string,
): Reply | Promise<Reply> {
  const exchange = exchangeOf(headers, method);
  let at = 0;
  const next = (): Reply | Promise<Reply> => {
    const middleware = chain[at++];
    return middleware === undefined ? answer() : middleware(exchange, next);
  };
  const reply = next();
  exchange.deadlineAtMs = undefined; // or a timer for each request would be left behind
  return reply;
}
