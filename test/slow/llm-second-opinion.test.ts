/**
 * A second opinion on every translation of LLM requests and answers: LiteLLM and Portkey translate the same bodies for the
 * same vendors. `test/conformance/llm/differences.json` lists each difference with a verdict; this test fails on one
 * that is not in the list, and on an entry that is no longer one. UPDATE_GOLDEN=1 rewrites the list and keeps the
 * verdicts; a new difference then waits for one.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ANSWERS, bodyFor } from "../conformance/llm/answers.ts";
import { ask, type Question } from "../conformance/llm/ask.ts";
import { BODIES, type ClientName } from "../conformance/llm/bodies.ts";
import { compareAnswers, findDifferences } from "../conformance/llm/compare.ts";
import { PLACES, startComparison, type Comparison, type Peer, type VendorFormat } from "../conformance/llm/gateways.ts";
import { DifferenceList, VERDICTS, type Entry } from "../conformance/llm/difference-list.ts";
import { contextOf } from "../support/proofs/prove.ts";
import { setAnswer } from "../support/servers/llm/vendors.ts";

const FILE = join(import.meta.dirname, "../conformance/llm/differences.json");

/** One translation by one peer. */
interface Pair {
  readonly peer: Peer;
  readonly client: ClientName;
  readonly format: VendorFormat;
}

/** LiteLLM fails now and then in a race of its own threads, which says nothing about its translation. */
const RACE = /dictionary changed size during iteration/;
const MAX_RACES = 5;

async function askPeer(peer: Peer, format: VendorFormat, question: Question): ReturnType<typeof ask> {
  let answer = await ask(peer.access(format), question);
  for (let races = 0; races < MAX_RACES && RACE.test(JSON.stringify(answer)); races++)
    answer = await ask(peer.access(format), question);
  return answer;
}

/** Compares what the vendor gets. */
async function compareRequests(comparison: Comparison, { peer, client, format }: Pair, list: DifferenceList) {
  const { vendors, recorders, own } = comparison;
  const { model } = PLACES[format];
  setAnswer(vendors, { text: "Hi." }, model);
  for (const [name, body] of Object.entries(BODIES[client])) {
    const question = { client, body, model, isStreamed: false };
    const answer = await ask(own.access(format), question);
    const ours = recorders[format].take();
    assert.ok(ours !== undefined, `${client} to ${format}, ${name}: nothing is sent, ${JSON.stringify(answer)}`);
    assert.equal(ours.refusal, undefined, `${client} to ${format}, ${name}: the vendor refuses our request`);
    const refused = await askPeer(peer, format, question);
    const theirs = recorders[format].take();
    const place = { peer: peer.name, pair: `${client} to ${format}`, part: "request", name };
    if (theirs === undefined) list.add(place, [{ path: "(not sent)", ours: "sent", theirs: messageOf(refused) }]);
    else {
      list.add(place, findDifferences({ path: ours.path, ...ours.body }, { path: theirs.path, ...theirs.body }));
      if (theirs.refusal !== undefined)
        list.add(place, [{ path: "(refused by the vendor)", ours: "served", theirs: theirs.refusal }]);
    }
  }
}

/** Compares what the client gets, whole and streamed. */
async function compareAllAnswers(comparison: Comparison, { peer, client, format }: Pair, list: DifferenceList) {
  const { vendors, recorders, own } = comparison;
  const { model } = PLACES[format];
  for (const [name, each] of Object.entries(ANSWERS))
    for (const isStreamed of [false, true]) {
      setAnswer(vendors, each.answer, model);
      const question = { client, body: bodyFor(each, BODIES[client]), model, isStreamed };
      const ours = await ask(own.access(format), question);
      const theirs = await askPeer(peer, format, question);
      recorders[format].take();
      const part = isStreamed ? "stream" : "answer";
      list.add({ peer: peer.name, pair: `${client} to ${format}`, part, name }, compareAnswers(ours, theirs));
    }
}

function messageOf(answer: Record<string, unknown>): string {
  return String(answer["error"]).slice(0, 160);
}

test("differences to other gateways are known and have a verdict", async (t) => {
  const comparison = await startComparison(contextOf(t));
  const known = JSON.parse(readFileSync(FILE, "utf8")) as readonly Entry[];
  const list = new DifferenceList();
  for (const peer of comparison.peers)
    for (const [client, format] of peer.pairs) {
      await compareRequests(comparison, { peer, client, format }, list);
      await compareAllAnswers(comparison, { peer, client, format }, list);
    }
  const entries = list.entries(known);
  if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(FILE, `${JSON.stringify(entries, undefined, 2)}\n`);
  else assert.deepEqual(entries, known);
  const unjudged = entries.filter(({ verdict, reason }) => !VERDICTS.includes(verdict) || reason === "");
  assert.deepEqual(
    unjudged.map(({ peer, pair, part, path }) => `${peer}, ${pair}, ${part}, ${path}`),
    [],
    "every difference has a verdict and a reason",
  );
});
