import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { create, type JsonObject, type Message as ProtoMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { McpGuardrailPhase, McpGuardrailSchema } from "../../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import {
  CheckError_Code as Code,
  McpRequestResultSchema,
  McpResponseResultSchema,
  type McpRequest,
  type McpResponse,
} from "../../../../generated/proto/gwproxy/dev/ext_mcp/ext_mcp_pb.ts";
import { compileExpression } from "../../../../src/cel/compile/compile-expression.ts";
import { environmentOf } from "../../../../src/cel/environments/phases.ts";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { CalloutError, type Callout } from "../../../../src/proxy/callouts/callout.ts";
import type { RoutedExchange } from "../../../../src/proxy/exchange/exchange.ts";
import { compileGuardrails, type Guard } from "../../../../src/proxy/mcp/guardrails/guardrails.ts";
import { McpError } from "../../../../src/proxy/mcp/mcp-error.ts";
import { scriptedTarget, testServer, type TestServer } from "../../../support/servers/scripted-target.ts";

const { REQUEST, RESPONSE, FULL, UNSPECIFIED: OFF } = McpGuardrailPhase;

type Request = MessageInitShape<typeof McpRequestResultSchema>;
type Response = MessageInitShape<typeof McpResponseResultSchema>;

/** A service as a test decides it; undefined passes, and an error stands for a call that fails. */
interface Service {
  readonly request?: (message: McpRequest) => Request | Error | undefined;
  readonly response?: (message: McpResponse) => Response | Error | undefined;
}

const PASS = { result: { case: "pass", value: {} } } as const;

interface Setup {
  readonly services: readonly Service[];
  readonly methods?: Readonly<Record<string, McpGuardrailPhase>>;
  readonly failOpen?: boolean;
  readonly spec?: MessageInitShape<typeof McpGuardrailSchema>;
  readonly invalidReason?: string;
}

function guardOf({ services, methods = { "*": FULL }, failOpen = false, spec = {}, invalidReason }: Setup): Guard {
  const waiting = [...services];
  const specs = services.map(() => create(McpGuardrailSchema, { methods, failOpen, ...spec }));
  const callout = (): Callout => calloutOf(waiting.shift() ?? {}, invalidReason);
  const expression = (text: string) => compileExpression(text, environmentOf("mcp"));
  const guard = compileGuardrails(specs, { callout, expression });
  assert.ok(guard);
  return guard;
}

function calloutOf({ request, response }: Service, invalidReason: string | undefined): Callout {
  const unary = (method: { readonly name: string }, message: ProtoMessage): Promise<ProtoMessage> => {
    // The test service knows the messages by the method.
    const isRequest = method.name === "CheckRequest";
    const answer = isRequest ? request?.(message as McpRequest) : response?.(message as McpResponse);
    if (answer instanceof Error) return Promise.reject(answer);
    return Promise.resolve(
      isRequest
        ? create(McpRequestResultSchema, (answer as Request | undefined) ?? PASS)
        : create(McpResponseResultSchema, (answer as Response | undefined) ?? PASS),
    );
  };
  return { path: "", invalidReason, unary } as unknown as Callout; // guardrails call nothing else of it
}

/** What guardrails read of a request. */
function exchangeOf(headers: readonly string[] = []): RoutedExchange & { readonly roots: Map<string, unknown> } {
  const roots = new Map<string, unknown>([["jwt", { sub: "ann" }]]);
  const exchange = {
    method: "POST",
    originalScheme: "http",
    host: "gw.test",
    target: "/mcp",
    requestHeaders: new HeaderList([...headers]),
    roots,
    root: (name: string) => roots.get(name),
    setRoot: (name: string, value: unknown) => roots.set(name, value),
    addLogField: () => undefined,
  };
  return exchange as unknown as RoutedExchange & { readonly roots: Map<string, unknown> };
}

const TOOLS = { tools: [{ name: "one" }, { name: "two" }] };

function targetOf(name: string) {
  return scriptedTarget(name, {
    "tools/call": ({ params }) => ({ result: { called: params?.["name"], arguments: params?.["arguments"] } }),
    "tools/list": () => ({ result: TOOLS }),
    "completion/complete": () => ({ result: { completion: { values: ["a"] } } }),
  });
}

/** Starts a virtual server of the targets a and b. */
function serverWith(setup: Setup, exchange = exchangeOf(), more: Partial<TestServer["options"]> = {}) {
  const targets = [targetOf("a"), targetOf("b")] as const;
  return { ...testServer(targets, { guard: guardOf(setup), exchange, ...more }), targets };
}

const bytesOf = (value: unknown): Uint8Array => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const mutated = (value: unknown) => ({ result: { case: "mutated" as const, value: bytesOf(value) } });
const textOf = (bytes: Uint8Array | undefined): unknown => bytes && JSON.parse(Buffer.from(bytes).toString());

async function errorOf(answer: Promise<unknown>): Promise<Pick<McpError, "rpcCode" | "message" | "status" | "data">> {
  const error = await answer.then(
    () => assert.fail("the request passes"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof McpError);
  const { rpcCode, message, status, data } = error;
  return { rpcCode, message, status, data };
}

describe("a call of one target", () => {
  it("shows the target's own names, and sends what each service made of it", async () => {
    const seen: McpRequest[] = [];
    const first: Service = {
      request: (message) => (seen.push(message), mutated({ name: "two", arguments: { big: "kept" } })),
    };
    const second: Service = {
      request: (message) => (seen.push(message), mutated('{"name":"two","arguments":{"n":12345678901234567890}}')),
    };
    const { ask, targets } = serverWith({ services: [first, second], methods: { "tools/call": REQUEST } });
    const { result } = await ask("tools/call", { name: "a_one", arguments: {} });
    assert.equal((result as { called: string }).called, "two");
    assert.deepEqual(targets[0].received[0]?.params?.["name"], "two");
    assert.deepEqual(
      seen.map(({ serviceNames, method, mcpRequest }) => [serviceNames, method, textOf(mcpRequest)]),
      [
        [["a"], "tools/call", { name: "one", arguments: {} }],
        [["a"], "tools/call", { name: "two", arguments: { big: "kept" } }],
      ],
    );
  });

  it("is authorized with the name that a service wrote", async () => {
    const asked: string[] = [];
    const authorize: TestServer["options"]["authorize"] = () => (_kind, target, name) =>
      asked.push(`${target}/${name}`) > 0 && name !== "secret";
    const services = [{ request: () => mutated({ name: "secret" }) }];
    const { open, targets } = serverWith({ services }, exchangeOf(), { authorize });
    const error = await errorOf(open("tools/call", { name: "a_one" }));
    assert.deepEqual(error, { rpcCode: -32_602, message: "Unknown tool: a_one", status: 200, data: undefined });
    assert.deepEqual(asked, ["a/secret"]);
    assert.deepEqual(targets[0].received, []);
  });

  it("has its result checked before names are rewritten", async () => {
    const seen: McpResponse[] = [];
    const services = [{ response: (message: McpResponse) => (seen.push(message), mutated({ content: [] })) }];
    const { ask } = serverWith({ services, methods: { "tools/*": RESPONSE } });
    assert.deepEqual((await ask("tools/call", { name: "b_one" })).result, { content: [] });
    assert.deepEqual([seen[0]?.serviceNames, textOf(seen[0]?.mcpResponse)], [["b"], { called: "one" }]);
  });

  it("is not shown where the target answers with an error", async () => {
    const services = [{ response: () => assert.fail("an error is shown") }];
    const { ask } = serverWith({ services, methods: { "*": RESPONSE } });
    assert.equal((await ask("tasks/get", { taskId: "a+1" })).error !== undefined, true);
  });

  it("shows only results of completions", async () => {
    const results: string[] = [];
    const service: Service = {
      request: () => assert.fail("the request is shown"),
      response: ({ method }) => void results.push(method),
    };
    const { ask } = serverWith({ services: [service] });
    await ask("completion/complete", { ref: { type: "ref/prompt", name: "a_x" }, argument: {} });
    assert.deepEqual(results, ["completion/complete"]);
  });
});

describe("a request to all targets", () => {
  it("is shown once without params, and its merged result with the names that clients see", async () => {
    const seen: McpRequest[] = [];
    const results: unknown[] = [];
    const service: Service = {
      request: (message) => (seen.push(message), mutated({ cursor: "other" })),
      response: ({ mcpResponse }) => (results.push(textOf(mcpResponse)), mutated({ tools: [] })),
    };
    const { ask, targets } = serverWith({ services: [service] });
    assert.deepEqual((await ask("tools/list", {})).result, { tools: [] });
    assert.deepEqual(seen.length, 1);
    assert.deepEqual([seen[0]?.serviceNames, seen[0]?.mcpRequest], [["a", "b"], undefined]);
    const names = (results[0] as { tools: { name: string }[] }).tools.map(({ name }) => name);
    assert.deepEqual(names, ["a_one", "a_two", "b_one", "b_two"]);
    assert.equal(targets[0].received[0]?.params?.["cursor"], undefined);
  });
});

describe("methods", () => {
  const table: readonly (readonly [Readonly<Record<string, McpGuardrailPhase>>, number])[] = [
    [{ "*": REQUEST, "tools/*": OFF }, 0],
    [{ "*": OFF, "*/call": REQUEST }, 1],
    [{ "*/call": REQUEST, "tools/*": OFF }, 0],
    [{ "tools/call": REQUEST, "tools/*": OFF, "*": OFF }, 1],
    [{ "prompts/get": REQUEST }, 0],
  ];
  for (const [methods, times] of table)
    it(`count by the most exact pattern of ${Object.keys(methods).join(" ")}`, async () => {
      let asked = 0;
      const { ask } = serverWith({ services: [{ request: () => void asked++ }], methods });
      await ask("tools/call", { name: "a_one" });
      assert.equal(asked, times);
    });
});

describe("rejections", () => {
  const table = [
    [
      { code: Code.UNKNOWN, reason: "no" },
      { rpcCode: -32_603, message: "no", data: undefined },
    ],
    [{ code: Code.PERMISSION_DENIED }, { rpcCode: -32_001, message: "rejected by a guardrail", data: undefined }],
    [
      { code: Code.RESOURCE_EXHAUSTED, reason: "slow", mcpError: bytesOf({ wait: 1 }) },
      { rpcCode: -32_003, message: "slow", data: '{"wait":1}' },
    ],
    [
      { code: Code.INVALID, reason: "bad", mcpError: bytesOf("{") },
      { rpcCode: -32_600, message: "bad", data: undefined },
    ],
    [
      { code: Code.INVALID, reason: "bad", mcpError: bytesOf({ code: 7, message: "own", data: [1] }) },
      { rpcCode: 7, message: "own", data: "[1]" },
    ],
  ] as const;
  for (const [value, expected] of table)
    it(`of a request carry code ${expected.rpcCode}, and end it before later services and targets`, async () => {
      const services: readonly Service[] = [
        { request: () => ({ result: { case: "error", value } }) },
        { request: () => assert.fail("a later service is asked") },
      ];
      const { open, targets } = serverWith({ services });
      assert.deepEqual(await errorOf(open("tools/call", { name: "a_one" })), { ...expected, status: 200 });
      assert.deepEqual(targets[0].received, []);
    });

  it("of a result take its place", async () => {
    const value = { code: Code.PERMISSION_DENIED, reason: "no" };
    const { ask } = serverWith({ services: [{ response: () => ({ result: { case: "error", value } }) }] });
    assert.deepEqual((await ask("tools/call", { name: "a_one" })).error, { code: -32_001, message: "no" });
    assert.deepEqual((await ask("tools/list")).error, { code: -32_001, message: "no" });
  });
});

describe("a service that fails", () => {
  const failures: readonly (readonly [string, () => Request | Error])[] = [
    ["by not answering", () => new CalloutError("unreachable")],
    ["by an empty result", () => ({})],
    ["by params that are no JSON", () => mutated("{")],
    ["by params that are no object", () => mutated("[]")],
    ["by params that end the object around them", () => mutated('{},"method":"tools/list"')],
    ["by params that are not UTF-8", () => ({ result: { case: "mutated", value: Buffer.from([0x7b, 0xff, 0x7d]) } })],
  ];
  for (const [how, request] of failures) {
    it(`${how} rejects the request`, async () => {
      const { open, targets } = serverWith({ services: [{ request }] });
      const error = await errorOf(open("tools/call", { name: "a_one" }));
      assert.deepEqual(error, { rpcCode: -32_603, message: "a guardrail failed", status: 200, data: undefined });
      assert.deepEqual(targets[0].received, []);
    });
    it(`${how} lets it pass with FailOpen`, async () => {
      const { ask } = serverWith({ services: [{ request }], failOpen: true });
      assert.deepEqual((await ask("tools/call", { name: "a_one" })).result, { called: "one" });
    });
  }

  it("because of the configuration rejects whatever the failure mode", async () => {
    const request = () => new CalloutError("no backend", { misconfigured: true });
    const one = serverWith({ services: [{ request }], failOpen: true });
    assert.equal((await errorOf(one.open("tools/call", { name: "a_one" }))).rpcCode, -32_603);
    const other = serverWith({ services: [{}], failOpen: true, invalidReason: "unresolved" });
    assert.equal((await errorOf(other.open("tools/call", { name: "a_one" }))).rpcCode, -32_603);
  });
});

describe("headers and metadata", () => {
  const HEADERS = ["x-team", "a", "cookie", "s=1"];
  const keysOf = ({ headers }: McpRequest): string[] => headers.map(({ key }) => key);

  it("show the headers that are allowed and not disallowed, and pseudo-headers where all are", async () => {
    const seen: string[][] = [];
    const services = [{ request: (message: McpRequest) => void seen.push(keysOf(message)) }];
    const specs = [
      {},
      { disallowedHeaders: ["cookie"] },
      { allowedHeaders: ["x-team", "cookie"], disallowedHeaders: ["cookie"] },
    ];
    for (const spec of specs)
      await serverWith({ services, spec }, exchangeOf(HEADERS)).ask("tools/call", { name: "a_one" });
    const pseudo = [":method", ":scheme", ":authority", ":path"];
    assert.deepEqual(seen, [[...pseudo, "x-team", "cookie"], [...pseudo, "x-team"], ["x-team"]]);
  });

  it("show values of expressions, without those that fail", async () => {
    const seen: (JsonObject | undefined)[] = [];
    const services = [{ request: ({ metadataContext }: McpRequest) => void seen.push(metadataContext) }];
    const expressions = { who: "jwt.sub", tool: "mcp.tool.target + '/' + mcp.tool.name", broken: "jwt.email" };
    const { ask } = serverWith({ services, spec: { metadata: { expressions } } });
    await ask("tools/call", { name: "a_one" });
    await ask("tools/list");
    assert.deepEqual(seen, [{ who: "ann", tool: "a/one" }, { who: "ann" }]);
  });

  it("of services reach targets and expressions, the later one winning", async () => {
    const header = (key: string, value: string) => ({ key, value: bytesOf(value) });
    const first: Service = {
      request: () => ({
        ...PASS,
        headerMutation: {
          set: [header("X-Client", "new"), header("x-list", "1"), header("x-list", "2"), header("bad name", "x")],
          remove: ["X-Secret", "content-length"],
        },
        metadata: { level: 1, kept: true },
      }),
    };
    const second: Service = {
      request: () => ({
        ...PASS,
        headerMutation: { set: [header("host", "evil"), header("x-break", "a\r\nb")] },
        metadata: { level: 2 },
      }),
    };
    const exchange = exchangeOf();
    const { ask, targets } = serverWith({ services: [first, second] }, exchange);
    await ask("tools/call", { name: "a_one" });
    assert.deepEqual(targets[0].headers.raw, ["x-client", "new", "x-list", "1", "x-list", "2"]);
    assert.deepEqual(
      exchange.roots.get("mcpGuardrails"),
      new Map<string, unknown>([
        ["level", 2],
        ["kept", true],
      ]),
    );
  });

  it("about arguments follow a change of exactly the argument that they repeated", async () => {
    const params = [
      "mcp-param-region",
      "eu",
      "mcp-param-text",
      `=?base64?${Buffer.from("ä").toString("base64")}?=`,
      "mcp-param-twice",
      "7",
      "mcp-param-other",
      "none",
      "mcp-param-gone",
      "true",
    ];
    const before = { region: "eu", text: "ä", one: 7, two: "7", gone: true };
    const after = { region: "us", text: "ö", one: 8, two: "8" };
    const services = [{ request: () => mutated({ name: "one", arguments: after }) }];
    const { ask, targets } = serverWith({ services }, exchangeOf(params));
    const [{ headers }] = targets;
    headers.raw.splice(0, headers.raw.length, ...params);
    await ask("tools/call", { name: "a_one", arguments: before });
    assert.deepEqual(
      [headers.get("mcp-param-region"), headers.get("mcp-param-text")],
      ["us", `=?base64?${Buffer.from("ö").toString("base64")}?=`],
    );
    assert.deepEqual([headers.get("mcp-param-twice"), headers.get("mcp-param-other")], ["7", "none"]);
    assert.equal(headers.get("mcp-param-gone"), undefined);
  });
});
