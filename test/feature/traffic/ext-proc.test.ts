/** traffic.extProc through real sockets: what a processor sees, and what becomes of what it says. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ProcessingMode_BodySendMode as SendBody } from "../../../generated/proto/envoy/extensions/filters/http/ext_proc/v3/processing_mode_pb.ts";
import { ProcessingResponseSchema } from "../../../generated/proto/envoy/service/ext_proc/v3/external_processor_pb.ts";
import { echoed } from "../../support/servers/echo.ts";
import { proveForms } from "../../support/proofs/forms.ts";
import { routePolicy } from "../../support/gateway/gateway.ts";
import { call } from "../../support/clients/http.ts";
import {
  answerBody,
  headerOf,
  outline,
  pass,
  startProcServer,
  type Decide,
} from "../../support/servers/proc-server.ts";
import { HEADERS_ONLY, PROC, withExtProc, set } from "../../support/gateway/with-ext-proc.ts";
import { prove } from "../../support/proofs/prove.ts";

proveForms(
  "extProc",
  ["backendRef.group", "backendRef.kind", "backendRef.name"],
  "a processor edits the headers of request and answer over one stream, and its metadata are read later",
  async (context, form) => {
    const decide: Decide = (message) => {
      const name = message.request.case;
      const edits = {
        setHeaders: [set("x-proc", String(name)), set(":path", "/moved")],
        removeHeaders: ["x-secret", "host"],
      };
      const answers = {
        setHeaders: [set("x-proc", String(name)), set(":status", "203")],
        removeHeaders: ["x-upstream"],
      };
      if (name === "requestHeaders")
        return {
          response: { case: name, value: { response: { headerMutation: edits } } },
          dynamicMetadata: { user: "alice", phase: "request" },
        };
      if (name !== "responseHeaders") return pass(message);
      return {
        response: { case: name, value: { response: { headerMutation: answers } } },
        dynamicMetadata: { phase: "response" },
      };
    };
    const show = `  traffic: {transformation: {request: {set: [{name: x-meta, value: extproc.user + extproc.phase}]}}}`;
    const { url, seen, streams } = await withExtProc(context, form(`{${PROC}, ${HEADERS_ONLY}}`), decide, {
      more: [routePolicy("show", "web", show)],
    });
    const answer = await call(`${url}/a?b=1`, { headers: { "x-secret": "s", "X-Proc": "mine" } });
    assert.equal(answer.status, 203);
    assert.equal(answer.headers["x-proc"], "responseHeaders");
    assert.equal(answer.headers["x-upstream"], undefined);
    const got = echoed(answer.body);
    assert.equal(got.url, "/moved");
    assert.equal(got.headers["x-proc"], "requestHeaders");
    assert.equal(got.headers["x-secret"], undefined);
    assert.equal(got.headers["x-meta"], "alicerequest");
    assert.equal(streams(), 1);
    assert.deepEqual(outline(seen), ["requestHeaders", "responseHeaders"]);
    assert.equal(headerOf(seen[0], ":path"), "/a?b=1");
    assert.equal(headerOf(seen[0], ":method"), "GET");
    assert.equal(headerOf(seen[0], "x-proc"), "mine");
    assert.equal(headerOf(seen[1], ":status"), "200");
    assert.equal(seen[0]?.protocolConfig?.requestBodyMode, SendBody.NONE);
    assert.equal(seen[1]?.protocolConfig, undefined);
  },
);

proveForms(
  "extProc",
  ["processingOptions.requestHeaderMode", "processingOptions.responseHeaderMode", "url"],
  "headers that are skipped are not shown",
  async (context, form) => {
    const server = await startProcServer(context, (message) => pass(message));
    const url = `url: "http://127.0.0.1:${server.port}"`;
    for (const [skip, expected] of [
      ["requestHeaderMode", ["responseHeaders"]],
      ["responseHeaderMode", ["requestHeaders"]],
    ] as const) {
      const options = `processingOptions: {requestBodyMode: None, responseBodyMode: None, ${skip}: Skip}`;
      const setup = await withExtProc(context, form(`{${url}, ${options}}`), () => undefined);
      const before = server.seen.length;
      assert.equal((await call(setup.url)).status, 200);
      assert.deepEqual(outline(server.seen.slice(before)), expected);
    }
  },
);

const capitals = (bytes: Uint8Array): Buffer => Buffer.from(Buffer.from(bytes).toString().toUpperCase());

const upper: Decide = (message) => {
  const { request } = message;
  if (request.case !== "requestBody" && request.case !== "responseBody") return pass(message);
  const bodyMutation = { mutation: { case: "body", value: capitals(request.value.body) } } as const;
  const headerMutation = { setHeaders: [set("x-size", String(request.value.body.length))] };
  return { response: { case: request.case, value: { response: { bodyMutation, headerMutation } } } };
};

proveForms(
  "extProc",
  ["processingOptions.requestBodyMode", "processingOptions.responseBodyMode"],
  "buffered bodies are shown whole and replaced, with headers that depend on them",
  async (context, form) => {
    const options = "processingOptions: {requestBodyMode: Buffered, responseBodyMode: Buffered}";
    const { url, seen } = await withExtProc(context, form(`{${PROC}, ${options}}`), upper);
    const asked = call(url, { method: "POST", body: "hello" });
    await assert.doesNotReject(asked);
    const answer = await asked;
    assert.deepEqual(outline(seen).slice(0, 3), ["requestHeaders", "requestBody hello.", "responseHeaders"]);
    assert.equal(seen.length, 4);
    const got = JSON.parse(answer.body.toLowerCase()) as { body: string; headers: Record<string, string> };
    assert.match(answer.body, /"BODY":"HELLO"/);
    assert.equal(got.headers["content-length"], "5");
    assert.equal(got.headers["x-size"], "5");
    assert.equal(answer.headers["x-size"], String(answer.body.length));
  },
);

prove(
  "GwPolicy spec.traffic.extProc.processingOptions.requestBodyMode",
  "a body beyond the limit fails when it is to be held whole, and passes after its start when it is not",
  async (context) => {
    const body = "x".repeat(2_500_000);
    const options = (mode: string) => `processingOptions: {requestBodyMode: ${mode}, responseBodyMode: None}`;
    const whole = await withExtProc(context, `{${PROC}, ${options("Buffered")}}`, upper);
    assert.equal((await call(whole.url, { method: "POST", body })).status, 500);
    assert.deepEqual(outline(whole.seen), ["requestHeaders"]);
    const part = await withExtProc(context, `{${PROC}, ${options("BufferedPartial")}}`, upper);
    const answer = await call(part.url, { method: "POST", body });
    const got = echoed(answer.body).body;
    assert.equal(got.length, body.length);
    assert.equal(got.lastIndexOf("X"), 2_097_151);
    assert.equal(got.indexOf("x"), 2_097_152);
  },
);

prove(
  "GwPolicy spec.traffic.extProc.backendRef.name",
  "by default bodies stream both ways: pieces come back fewer, more, later and in capitals",
  async (context) => {
    const held = new Map<string, Uint8Array[]>();
    const { url, seen } = await withExtProc(context, `{${PROC}}`, (message, stream) => {
      const { request } = message;
      if (request.case !== "requestBody" && request.case !== "responseBody") {
        // The answer about the request's headers waits until the whole body is there.
        return request.case === "requestHeaders" ? undefined : pass(message);
      }
      const pieces = held.get(request.case) ?? [];
      held.set(request.case, [...pieces, request.value.body]);
      if (!request.value.endOfStream) return undefined;
      if (request.case === "requestBody")
        stream.write(create(ProcessingResponseSchema, { response: { case: "requestHeaders", value: {} } }));
      const all = capitals(Buffer.concat(held.get(request.case) ?? []));
      const half = Math.ceil(all.length / 2);
      stream.write(create(ProcessingResponseSchema, answerBody(request.case, all.subarray(0, half), false)));
      return answerBody(request.case, all.subarray(half), true);
    });
    const answer = await call(url, { method: "POST", body: "hello".repeat(50_000) });
    assert.equal(answer.status, 200);
    const got = JSON.parse(answer.body) as { BODY: string };
    assert.equal(got.BODY, "HELLO".repeat(50_000));
    assert.equal(seen[0]?.protocolConfig?.requestBodyMode, SendBody.FULL_DUPLEX_STREAMED);
    const empty = await call(url);
    assert.equal(empty.status, 500, "a request without a body gets no answer about its headers");
  },
);
