/** Compiles prompt guards from a configuration message, and a guard service whose answers the test triggers. */
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  BuiltinPattern,
  GuardAction,
  GuardSchema,
  GuardScope,
  PromptGuardSchema,
  RegexGuardSchema,
  WebhookGuardSchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../src/lib/header-list.ts";
import type { Callout } from "../../../src/proxy/callouts/callout.ts";
import { compilePromptGuards, type PromptGuards } from "../../../src/proxy/llm/guards/run.ts";
import { fakeUpstream, testDeps } from "./llm-harness.ts";

export interface CompiledGuard {
  readonly builtin?: BuiltinPattern;
  readonly scope?: readonly GuardScope[];
  /** A service to ask in place of the pattern. */
  readonly callout?: Callout | undefined;
}

/** Returns a guard that rejects with the message "no". */
function guardOf({ builtin = BuiltinPattern.SSN, scope = [GuardScope.MESSAGES], callout }: CompiledGuard) {
  const regex = create(RegexGuardSchema, { builtins: [builtin] });
  const webhook = create(WebhookGuardSchema);
  return create(GuardSchema, {
    scope: [...scope],
    action: GuardAction.REJECT,
    response: { message: "no", status: 403 },
    kind: callout === undefined ? { case: "regex", value: regex } : { case: "webhook", value: webhook },
  });
}

/** Compiles one guard for each phase that is given. */
export function compileGuards(phases: {
  readonly request?: CompiledGuard;
  readonly response?: CompiledGuard;
}): PromptGuards {
  const { request, response } = phases;
  const policy = create(PromptGuardSchema, {
    streaming: true,
    request: request === undefined ? [] : [guardOf(request)],
    response: response === undefined ? [] : [guardOf(response)],
  });
  const deps = testDeps(fakeUpstream(() => assert.fail("nothing is sent")));
  const callout = (request ?? response)?.callout;
  const guards = compilePromptGuards(policy, { ...deps, callout: () => callout ?? assert.fail("no service") });
  assert.ok(guards);
  return guards;
}

export interface SlowService {
  readonly callout: Callout;
  /** Bodies of the calls, oldest first. */
  readonly asked: readonly unknown[];
  /** Answers the oldest call that waits. */
  finish(answer: object | Error): Promise<void>;
}

/** A guard service whose calls stay open until the test finishes them. */
export function slowService(): SlowService {
  const waiting: PromiseWithResolvers<object>[] = [];
  const asked: unknown[] = [];
  const unused = (): never => assert.fail("not used by webhooks");
  const callout: Callout = {
    path: "",
    invalidReason: undefined,
    unary: unused,
    stream: unused,
    async http({ body }) {
      asked.push(JSON.parse(String(body)));
      const one = Promise.withResolvers<object>();
      waiting.push(one);
      const answer = await one.promise;
      return { status: 200, headers: new HeaderList(), body: Buffer.from(JSON.stringify(answer)) };
    },
  };
  const finish = async (answer: object | Error): Promise<void> => {
    const one = waiting.shift() ?? assert.fail("the service was not asked");
    if (answer instanceof Error) one.reject(answer);
    else one.resolve(answer);
    await new Promise(setImmediate);
  };
  return { callout, asked, finish };
}
