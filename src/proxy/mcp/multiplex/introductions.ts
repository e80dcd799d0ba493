/**
 * Makes one introduction of those of several targets: the results of `initialize`, and of `server/discover` from
 * 2026-07-28 on. The virtual server presents itself as the gateway, with everything that its targets can do.
 */
import { VERSION } from "../../../lib/version.ts";
import { eachElement, findMember, readString, stringAt } from "../message/spans.ts";
import type { Message } from "../message/message.ts";
import type { TargetResponse } from "./fan-out.ts";
import { chooseAny, groupMembers, mergeObjects, type Part } from "./merge-objects.ts";

const SERVER_INFO = JSON.stringify({ name: "gwproxy", version: VERSION });
const INTRODUCTION = "This server offers the tools, prompts and resources of several servers.";

/** What the gateway sees to itself, whatever targets can do: it announces their coming and going. */
const LISTS = '{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}';
/** Subscriptions need a stream that outlives a request. */
const STATEFUL_LISTS = LISTS.replace('"resources":{', '"resources":{"subscribe":true,');

/**
 * Returns the JSON text of the result of `initialize`.
 * @param version that the client asked for; the answer is the lowest of this one and those of the targets
 */
export function mergeInitialize(answers: readonly TargetResponse[], version: string, stateless: boolean): string {
  const results = answers.flatMap(({ message }) => resultOf(message));
  const versions = results.map(({ bytes, span }) => stringAt(bytes, span, "protocolVersion") ?? version);
  // Versions are dates, which compare as text.
  const lowest = [version, ...versions].reduce((low, other) => (other < low ? other : low));
  const capabilities = mergeCapabilities(results, stateless);
  const instructions = JSON.stringify(joinInstructions(answers));
  return `{"protocolVersion":${JSON.stringify(lowest)},"capabilities":${capabilities},"serverInfo":${SERVER_INFO},"instructions":${instructions}}`;
}

/**
 * Returns the JSON text of the result of `server/discover`; undefined when no version is common to all targets. Clients
 * may use a version that is listed with every method, so each target has to know it.
 */
export function mergeDiscover(answers: readonly TargetResponse[]): string | undefined {
  const results = answers.flatMap(({ message }) => resultOf(message));
  const [first, ...others] = results.map(readVersions);
  const common = [...(first ?? [])].filter((version) => others.every((versions) => versions.has(version)));
  if (common.length === 0) return undefined;
  const capabilities = mergeCapabilities(results, false);
  const instructions = JSON.stringify(joinInstructions(answers));
  const meta = `{"io.modelcontextprotocol/serverInfo":${SERVER_INFO}}`;
  return `{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":${JSON.stringify(common)},"capabilities":${capabilities},"instructions":${instructions},"_meta":${meta}}`;
}

function resultOf({ bytes, payload }: Message): Part[] {
  return payload === undefined ? [] : [{ bytes, span: payload }];
}

function readVersions({ bytes, span }: Part): ReadonlySet<string> {
  const list = findMember(bytes, span, "supportedVersions");
  const texts = list === undefined ? [] : [...eachElement(bytes, list)].map((element) => readString(bytes, element));
  return new Set(texts.filter((text) => text !== undefined));
}

function mergeCapabilities(results: readonly Part[], stateless: boolean): string {
  const own = stateless ? LISTS : STATEFUL_LISTS;
  const bytes = Buffer.from(own);
  const ownPart = { bytes, span: { start: 0, end: bytes.length } };
  const members = new Map<string, string>();
  for (const [name, values] of groupMembers([ownPart, ...membersOf(results, "capabilities")])) {
    if (name === "extensions") members.set(name, mergeExtensions(values));
    // In front of a stateless server nothing that a target says about subscriptions holds.
    else members.set(name, mergeObjects(stateless && name === "resources" ? values.slice(0, 1) : values, chooseAny));
  }
  return printObject(members);
}

/** Settings of an extension are kept only where all targets that have it agree. */
function mergeExtensions(values: readonly Part[]): string {
  const members = new Map<string, string>();
  for (const [name, settings] of groupMembers(values)) {
    const texts = settings.map(({ bytes, span }) => bytes.toString("utf8", span.start, span.end));
    members.set(name, texts.every((text) => isSameJson(text, texts[0])) ? (texts[0] ?? "{}") : "{}");
  }
  return printObject(members);
}

function isSameJson(a: string, b: string | undefined): boolean {
  return a === b || (b !== undefined && JSON.stringify(JSON.parse(a)) === JSON.stringify(JSON.parse(b)));
}

function membersOf(parts: readonly Part[], name: string): Part[] {
  return parts.flatMap(({ bytes, span }) => {
    const found = findMember(bytes, span, name);
    return found === undefined ? [] : [{ bytes, span: found }];
  });
}

function printObject(members: ReadonlyMap<string, string>): string {
  return `{${[...members].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

function joinInstructions(answers: readonly TargetResponse[]): string {
  const parts = [INTRODUCTION];
  for (const { target, message } of answers) {
    const [result] = resultOf(message);
    const text = result === undefined ? undefined : stringAt(result.bytes, result.span, "instructions");
    if (text !== undefined && text !== "") parts.push(`[${target.name}]\n${text}`);
  }
  return parts.join("\n\n");
}
