/** Agent cards in messages of gRPC: what URLs of HTTP become, and what stays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { HeaderList } from "../../../../src/lib/header-list.ts";
import { collect } from "../../../../src/proxy/exchange/collect.ts";
import type { Reply } from "../../../../src/proxy/exchange/exchange.ts";
import { rewriteGrpcCard } from "../../../../src/proxy/a2a/grpc-card.ts";
import { makeExchange } from "../../../support/gateway/exchange.ts";
import { streamFrom } from "../../../support/gateway/llm-harness.ts";

const METHODS = {
  "1.0": "/lf.a2a.v1.A2AService/GetExtendedAgentCard",
  "0.3": "/a2a.v1.A2AService/GetAgentCard",
} as const;
type Generation = keyof typeof METHODS;

/** Fields of a message: number and content, which is a text or another message. */
type Fields = readonly (readonly [number: number, content: string | Uint8Array])[];

function print(fields: Fields): Uint8Array {
  const writer = new BinaryWriter();
  for (const [number, content] of fields)
    writer.tag(number, WireType.LengthDelimited).bytes(typeof content === "string" ? Buffer.from(content) : content);
  return writer.finish();
}

function read(message: Uint8Array): [number, string][] {
  const reader = new BinaryReader(message);
  const fields: [number, string][] = [];
  while (reader.pos < reader.len) {
    const [number] = reader.tag();
    fields.push([number, Buffer.from(reader.bytes()).toString("latin1")]);
  }
  return fields;
}

function frame(message: Uint8Array, isPacked = false): Buffer {
  const head = Buffer.alloc(5);
  head[0] = isPacked ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function latin1(message: Uint8Array): string {
  return Buffer.from(message).toString("latin1");
}

/** How a call came to the agent, and its coding. */
interface Came {
  readonly by?: "HTTPRoute" | "GRPCRoute";
  readonly encoding?: string | undefined;
}

async function rewrite(
  generation: Generation,
  body: Buffer,
  { by = "HTTPRoute", encoding }: Came = {},
): Promise<Buffer> {
  const path = METHODS[generation];
  const exchange = {
    ...makeExchange({ target: path, host: "api.example.com" }),
    originalScheme: "https" as const,
    route: { namespace: "default", name: "agent", kind: by, rule: "" },
  };
  const headers = new HeaderList(encoding === undefined ? [] : ["grpc-encoding", encoding]);
  const reply: Reply = { status: 200, headers, body: streamFrom([body]), upstream: true };
  const { body: changed } = await rewriteGrpcCard(reply, exchange);
  assert.ok(changed !== null && !Buffer.isBuffer(changed));
  return (await collect(changed, 4096)) ?? Buffer.alloc(0);
}

const REST = print([
  [1, "http://10.0.0.8:9000/rest"],
  [2, "HTTP+JSON"],
  [99, "unknown"],
]);
const REST_OUT = print([
  [1, "https://api.example.com/rest"],
  [2, "HTTP+JSON"],
  [99, "unknown"],
]);
const GRPC = print([
  [1, "http://10.0.0.8:9001"],
  [2, "GRPC"],
]);

const CARDS: Readonly<Record<Generation, { readonly from: Fields; readonly to: Fields }>> = {
  "1.0": {
    from: [
      [1, "name"],
      [3, REST],
      [3, GRPC],
      [13, "signature"],
      [14, "http://10.0.0.8/icon"],
    ],
    to: [
      [1, "name"],
      [3, REST_OUT],
      [3, GRPC],
      [14, "http://10.0.0.8/icon"],
    ],
  },
  "0.3": {
    from: [
      [3, "http://10.0.0.8:9000/rpc"],
      [14, "JSONRPC"],
      [15, REST],
      [15, GRPC],
      [17, "signature"],
    ],
    to: [
      [3, "https://api.example.com/rpc"],
      [14, "JSONRPC"],
      [15, REST_OUT],
      [15, GRPC],
    ],
  },
};

for (const generation of ["1.0", "0.3"] as const) {
  const { from, to } = CARDS[generation];
  test(`URLs of a card of ${generation} lead to the gateway; gRPC, unknown fields and other URLs stay`, async () => {
    const changed = await rewrite(generation, frame(print(from)));
    const expected = to.map(([number, content]) => [number, typeof content === "string" ? content : latin1(content)]);
    assert.deepEqual(read(changed.subarray(5)), expected);
    assert.equal(changed.readUInt32BE(1), changed.length - 5);
    assert.deepEqual(await rewrite(generation, frame(gzipSync(print(from)), true), { encoding: "gzip" }), changed);
  });

  test(`a card of ${generation} that leads there already keeps every byte, with its signatures`, async () => {
    const card = frame(print([...to, [generation === "1.0" ? 13 : 17, "signature"]]));
    assert.deepEqual(await rewrite(generation, card), card);
  });
}

test("a URL cannot be hidden behind a binding that does not count", async () => {
  const both = (url: string) =>
    print([
      [2, "GRPC"],
      [1, url],
      [2, "JSONRPC"],
    ]);
  const changed = await rewrite("1.0", frame(print([[3, both("http://10.0.0.8/rpc")]])));
  assert.deepEqual(read(changed.subarray(5)), read(print([[3, both("https://api.example.com/rpc")]])));
});

const SOCKET = print([
  [1, "wss://10.0.0.8/socket"],
  [2, "https://a2a.example/websocket"],
]);
/** What is left of cards that came by a GRPCRoute. */
const OF_GRPC: readonly (readonly [about: string, generation: Generation, from: Fields, to: Fields])[] = [
  [
    "interfaces of HTTP go, with the signatures",
    "1.0",
    [
      [1, "name"],
      [3, REST],
      [3, GRPC],
      [3, SOCKET],
      [13, "signature"],
    ],
    [
      [1, "name"],
      [3, GRPC],
      [3, SOCKET],
    ],
  ],
  [
    "a card of gRPC alone stays as it is",
    "1.0",
    [
      [3, GRPC],
      [13, "signature"],
    ],
    [
      [3, GRPC],
      [13, "signature"],
    ],
  ],
  ["an only interface stays, and leads to the gateway", "1.0", [[3, REST]], [[3, REST_OUT]]],
  [
    "the URL of an older card becomes that of gRPC",
    "0.3",
    [
      [1, "name"],
      [3, "http://10.0.0.8:9000/rpc"],
      [14, "JSONRPC"],
      [15, REST],
      [15, GRPC],
      [17, "signature"],
    ],
    [
      [1, "name"],
      [15, GRPC],
      [3, "http://10.0.0.8:9001"],
      [14, "GRPC"],
    ],
  ],
  [
    "the URL of an older card that is of gRPC stays",
    "0.3",
    [
      [3, "10.0.0.8:9001"],
      [14, "GRPC"],
      [15, REST],
    ],
    [
      [3, "10.0.0.8:9001"],
      [14, "GRPC"],
    ],
  ],
];

for (const [about, generation, from, to] of OF_GRPC)
  test(`a card behind a GRPCRoute: ${about}`, async () => {
    const changed = await rewrite(generation, frame(print(from)), { by: "GRPCRoute" });
    assert.deepEqual(read(changed.subarray(5)), read(print(to)));
  });

const BROKEN: readonly (readonly [about: string, body: Buffer, encoding?: string])[] = [
  ["two messages", Buffer.concat([frame(REST), frame(REST)])],
  ["a cut frame", frame(REST).subarray(0, 9)],
  ["no message", frame(Buffer.from([0xff, 0xff, 0xff]))],
  ["an unknown encoding", frame(REST, true), "lzma"],
  ["a broken encoding", frame(REST, true), "gzip"],
  ["more than the limit", frame(Buffer.alloc(2000))],
  ["more than the limit when it is decoded", frame(gzipSync(print([[1, "x".repeat(5000)]])), true), "gzip"],
];

for (const [about, body, encoding] of BROKEN)
  test(`a card that cannot be read is an error: ${about}`, async () => {
    await assert.rejects(rewrite("1.0", body, { encoding }), { code: "a2a_card_invalid" });
  });
