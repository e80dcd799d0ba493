/**
 * Points the URLs of an agent card at the gateway that a call in the gRPC binding returns. It edits the encoded message in
 * place, so fields that it does not know stay as they are. `handler.ts` calls it for the methods whose result is a card.
 *
 * A card names the URLs "where this interface is available" (A2A 1.0, AgentInterface). Behind a GRPCRoute that is gRPC
 * alone, and the gateway does not know by which other route clients come to the rest: interfaces of HTTP are left out
 * there, as long as one of gRPC is left.
 */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { BodySink, BodyStream } from "../exchange/body.ts";
import { codingOf, forgetBody, unpack } from "../exchange/content-coding.ts";
import { ProxyError } from "../exchange/errors.ts";
import type { Reply, RoutedExchange } from "../exchange/exchange.ts";
import { pathOf } from "../../lib/network/request-target.ts";
import { addressOfCall, printInterfaceUrl, readInterfaceUrl, type CardAddress } from "./card-address.ts";

/** Numbers of the fields of `AgentCard` that hold URLs of interfaces. */
interface CardLayout {
  /** Field with one URL and the field that names its binding; 0 where the card has none. */
  readonly url: number;
  readonly preferred: number;
  /** Field with interfaces, each with its URL in field 1 and its binding in field 2. */
  readonly interfaces: number;
  readonly signatures: number;
}

const LAYOUT_1_0: CardLayout = { url: 0, preferred: 0, interfaces: 3, signatures: 13 };
const LAYOUT_0_3: CardLayout = { url: 3, preferred: 14, interfaces: 15, signatures: 17 };
const INTERFACE_URL = 1;
const INTERFACE_BINDING = 2;
const GRPC = "GRPC";
const GRPC_ROUTE = "GRPCRoute";
const GRPC_BYTES = Buffer.from(GRPC);
const EMPTY = new Uint8Array();

/** Flag, and length of the message (gRPC over HTTP/2, "Length-Prefixed-Message"). */
const FRAME_HEAD_BYTES = 5;

/** @throws ProxyError a2a_card_invalid */
export async function rewriteGrpcCard(reply: Reply, exchange: RoutedExchange): Promise<Reply> {
  const { body, headers } = reply;
  // An error has no message.
  if (body === null || Buffer.isBuffer(body)) return reply;
  const { responseLimitBytes } = exchange;
  const { bytes, trailers } = await readMessageBody(body, responseLimitBytes + FRAME_HEAD_BYTES);
  const message = await readFrame(bytes, headers.get("grpc-encoding"), responseLimitBytes);
  const changed = message === undefined ? undefined : editMessage(message, exchange);
  if (changed !== undefined) forgetBody(headers);
  return { ...reply, body: new WholeBody(changed === undefined ? bytes : frameOf(changed), trailers) };
}

/** @returns undefined when there is no message, as in an error */
async function readFrame(bytes: Buffer, encoding: string | undefined, limitBytes: number): Promise<Buffer | undefined> {
  if (bytes.length === 0) return undefined;
  if (bytes.length < FRAME_HEAD_BYTES || bytes.readUInt32BE(1) !== bytes.length - FRAME_HEAD_BYTES)
    throw invalid("not one message");
  const message = bytes.subarray(FRAME_HEAD_BYTES);
  if (bytes[0] === 0) return message;
  const coding = codingOf(encoding);
  if (coding === undefined || coding === null) throw invalid("unknown message encoding");
  const decoded = await unpack(message, coding, limitBytes).catch((cause: unknown) => {
    throw invalid("broken message encoding", cause);
  });
  if (decoded === undefined) throw invalid("too large when it is decoded");
  return decoded;
}

function frameOf(message: Uint8Array): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** @returns undefined when the card points at the gateway already */
function editMessage(message: Buffer, exchange: RoutedExchange): Uint8Array | undefined {
  const target = pathOf(exchange.target);
  const layout = target.includes("/lf.a2a.") ? LAYOUT_1_0 : LAYOUT_0_3;
  const address = addressOfCall(exchange, "", [target]);
  try {
    const fields = [...readFields(message)];
    return (
      (exchange.route?.kind === GRPC_ROUTE && keepGrpc(fields, layout, address)) || editCard(fields, layout, address)
    );
  } catch (cause) {
    if (cause instanceof ProxyError) throw cause;
    throw invalid("not a message of AgentCard", cause);
  }
}

/** One field as it stands in the message. */
interface RawField {
  readonly number: number;
  /** Content of a field with a length; undefined for other wire types. */
  readonly content: Uint8Array | undefined;
  /** The field with its tag. */
  readonly raw: Uint8Array;
}

function* readFields(message: Uint8Array): Generator<RawField> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, type] = reader.tag();
    const content = type === WireType.LengthDelimited ? reader.bytes() : undefined;
    if (content === undefined) reader.skip(type, number);
    yield { number, content, raw: message.subarray(start, reader.pos) };
  }
}

/** Leaves out what is not of gRPC. @returns undefined when nothing would be left, or nothing changes */
function keepGrpc(fields: readonly RawField[], layout: CardLayout, { cardPath }: CardAddress): Uint8Array | undefined {
  const interfaces = fields.flatMap(({ number, content }) =>
    number === layout.interfaces && content !== undefined ? [{ content, ...readInterface(content, cardPath) }] : [],
  );
  const first = interfaces.find(({ isOfGrpc }) => isOfGrpc);
  const isGrpcFirst = isGrpc(fields, layout.preferred);
  if (first === undefined && !isGrpcFirst) return undefined;
  const dropped = new Set(interfaces.filter(({ isOfHttp }) => isOfHttp).map(({ content }) => content));
  // The one URL of an older card becomes that of gRPC.
  const replacesUrl = layout.url !== 0 && !isGrpcFirst;
  if (!replacesUrl && dropped.size === 0) return undefined;
  const replaced = replacesUrl ? [layout.url, layout.preferred] : [];
  const left = fields.filter(
    ({ number, content }) =>
      number !== layout.signatures && !replaced.includes(number) && !(content !== undefined && dropped.has(content)),
  );
  const own = replacesUrl
    ? [printField(layout.url, first?.url ?? EMPTY), printField(layout.preferred, GRPC_BYTES)]
    : [];
  return Buffer.concat([...left.map(({ raw }) => raw), ...own]);
}

/** What one interface says of itself. */
function readInterface(message: Uint8Array, cardPath: string) {
  const fields = [...readFields(message)];
  const isOfGrpc = isGrpc(fields, INTERFACE_BINDING);
  const url = fields.findLast(({ number }) => number === INTERFACE_URL)?.content ?? EMPTY;
  const isOfHttp = !isOfGrpc && readInterfaceUrl(Buffer.from(url).toString("utf8"), cardPath) !== undefined;
  return { isOfGrpc, isOfHttp, url };
}

/** @returns undefined when nothing changes */
function editCard(fields: readonly RawField[], layout: CardLayout, address: CardAddress): Uint8Array | undefined {
  const isGrpcFirst = isGrpc(fields, layout.preferred);
  const edited = fields.map(({ number, content, raw }) => {
    if (content === undefined) return raw;
    if (number === layout.interfaces) {
      const changed = editInterface(content, address);
      return changed === undefined ? raw : printField(number, changed);
    }
    if (number !== layout.url || isGrpcFirst) return raw;
    const url = mapUrl(content, address);
    return url === undefined ? raw : printField(number, url);
  });
  if (edited.every((raw, at) => raw === fields[at]?.raw)) return undefined;
  return Buffer.concat(edited.filter((_, at) => fields[at]?.number !== layout.signatures));
}

/** @returns undefined when nothing changes */
function editInterface(message: Uint8Array, address: CardAddress): Uint8Array | undefined {
  const fields = [...readFields(message)];
  if (isGrpc(fields, INTERFACE_BINDING)) return undefined;
  const edited = fields.map(({ number, content, raw }) => {
    const url = number === INTERFACE_URL && content !== undefined ? mapUrl(content, address) : undefined;
    return url === undefined ? raw : printField(number, url);
  });
  return edited.every((raw, at) => raw === fields[at]?.raw) ? undefined : Buffer.concat(edited);
}

/** Of several texts in one field readers of protobuf take the last. */
function isGrpc(fields: readonly RawField[], binding: number): boolean {
  const content = fields.findLast(({ number }) => number === binding)?.content;
  return content !== undefined && Buffer.from(content).toString("latin1").toUpperCase() === GRPC;
}

/** @returns undefined when the URL stays */
function mapUrl(content: Uint8Array, address: CardAddress): Uint8Array | undefined {
  const text = Buffer.from(content).toString("utf8");
  const url = readInterfaceUrl(text, address.cardPath);
  const mapped = url === undefined ? text : printInterfaceUrl(url, address);
  return mapped === text ? undefined : Buffer.from(mapped);
}

function printField(number: number, content: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(content).finish();
}

function invalid(detail: string, cause?: unknown): ProxyError {
  return new ProxyError("a2a_card_invalid", { detail, cause });
}

interface MessageBody {
  readonly bytes: Buffer;
  readonly trailers: readonly string[];
}

/** Reads a body with its trailers, which hold the status of the call. @throws ProxyError a2a_card_invalid */
function readMessageBody(source: BodyStream, limitBytes: number): Promise<MessageBody> {
  const { promise, resolve, reject } = Promise.withResolvers<MessageBody>();
  const chunks: Buffer[] = [];
  let length = 0;
  source.read({
    data(chunk) {
      length += chunk.length;
      if (length > limitBytes) {
        source.destroy();
        reject(invalid("too large"));
        return false;
      }
      chunks.push(chunk);
      return true;
    },
    end: (trailers) => resolve({ bytes: Buffer.concat(chunks), trailers }),
    error: reject,
  });
  return promise;
}

/** A body that is there as a whole, with its trailers. */
class WholeBody implements BodyStream {
  readonly #bytes: Buffer;
  readonly #trailers: readonly string[];
  #sink: BodySink | undefined;

  constructor(bytes: Buffer, trailers: readonly string[]) {
    this.#bytes = bytes;
    this.#trailers = trailers;
  }

  read(sink: BodySink): void {
    this.#sink = sink;
    if (this.#bytes.length === 0 || sink.data(this.#bytes)) this.resume();
  }

  resume(): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.end(this.#trailers);
  }

  destroy(): void {
    this.#sink = undefined;
  }
}
