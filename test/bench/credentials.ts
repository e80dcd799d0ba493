/**
 * Measures authentication to backends: microseconds of processor time that each kind adds to a request, with its tokens
 * in the cache. No socket is involved.
 */
import { generateKeyPairSync } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BackendAuthSchema } from "../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../src/lib/header-list.ts";
import { AuthCompiler } from "../../src/proxy/backends/auth/index.ts";
import { PLAIN as DIRECT } from "../../src/proxy/upstream/dial/connection-settings.ts";
import { Tokens } from "../../src/proxy/tokens/tokens.ts";
import { makeDeps } from "../support/gateway/exchange.ts";
import { recordingLog } from "../support/gateway/silent-log.ts";
import { exchangeOf, microseconds, PLAIN } from "./in-process.ts";
import { printTable } from "./report.ts";

type Kind = NonNullable<MessageInitShape<typeof BackendAuthSchema>["kind"]>;

interface Load {
  readonly title: string;
  readonly goal: string;
  readonly kind: Kind;
  readonly body?: Buffer;
}

const BEARER = ["authorization", `Bearer ${"t".repeat(900)}`];
const ENVIRONMENT = { GWPROXY_AMBIENT_IDENTITY_HOSTS: "*" };
const CHAT = Buffer.alloc(4096, "x");

const LOADS: readonly Load[] = [
  { title: "key", goal: "-", kind: { case: "key", value: { value: "secret" } } },
  { title: "token of a cloud, in the cache", goal: "3", kind: { case: "cloudB", value: {} } },
  {
    title: "token for that of the caller (900 bytes), in the cache",
    goal: "5",
    kind: {
      case: "oauthTokenExchange",
      value: {
        endpoint: { service: { place: { case: "origin", value: { host: "as.test", port: 80 } } } },
        cache: { maxEntries: 8192, defaultTtlMs: 300_000 },
      },
    },
  },
  {
    title: "SigV4 of a chat body of 4 KiB",
    goal: "15",
    kind: {
      case: "cloudA",
      value: { region: "eu-west-1", keys: { accessKeyId: "AKID", secretAccessKey: "secret", sessionToken: "session" } },
    },
    body: CHAT,
  },
  {
    title: "jwtSign with RS256, once a second",
    goal: "5",
    kind: { case: "jwtSign", value: { key: { privateKeyPem: newKey(), algorithm: "RS256" }, ttlSeconds: 300 } },
  },
];

function newKey(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

export async function credentialTable(): Promise<string> {
  const base = await microseconds(() => void callOf());
  const rows: string[][] = [];
  for (const { title, goal, kind, body = Buffer.alloc(0) } of LOADS) {
    const auth = compile(kind);
    const work = async (): Promise<void> => {
      const { exchange, headers } = callOf();
      const call = { caller: exchange, host: "api.example.com", connection: DIRECT };
      const path = await auth.place(call, headers, exchange.target);
      await auth.sign?.(call, { method: "POST", path, headers, body });
    };
    rows.push([title, ((await microseconds(work)) - base).toFixed(2), goal]);
  }
  return printTable(["credential", "µs", "at most"], rows);
}

function callOf(): { readonly exchange: ReturnType<typeof exchangeOf>; readonly headers: HeaderList } {
  const exchange = exchangeOf([...PLAIN, ...BEARER], "POST");
  return { exchange, headers: exchange.requestHeaders.clone() };
}

/** Compiles a block whose token endpoints and cloud services respond at once. */
function compile(kind: Kind): NonNullable<ReturnType<AuthCompiler["compile"]>> {
  const { log } = recordingLog();
  const headers = new HeaderList(["content-type", "application/json"]);
  const body = Buffer.from(JSON.stringify({ access_token: "minted", token_type: "Bearer", expires_in: 86_400 }));
  const unused = (): never => {
    throw new Error("no call over gRPC is measured");
  };
  const http = async () => ({ status: 200, headers, body });
  const callout = { path: "", invalidReason: undefined, unary: unused, stream: unused, http };
  const { expression } = makeDeps();
  const compiler = new AuthCompiler({
    tokens: new Tokens({ log }),
    callouts: () => ({ open: () => callout, openTarget: () => callout }),
    expression,
    log,
    environment: ENVIRONMENT,
  });
  const compiled = compiler.compile(create(BackendAuthSchema, { kind }));
  if (compiled === undefined) throw new Error("the block is empty");
  return compiled;
}
