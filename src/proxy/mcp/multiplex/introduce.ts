/**
 * Answers `initialize` and `server/discover`. The only target answers for itself; several are presented as one server
 * (`introductions.ts`).
 */
import { ERROR_CODES, McpError } from "../mcp-error.ts";
import { leaveUnlessResult } from "../targets/leave-unless-result.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import { answerWith, errorTo, responseTo } from "./answers.ts";
import { fanOut } from "./fan-out.ts";
import { mergeDiscover, mergeInitialize } from "./introductions.ts";
import type { ClientRequest } from "./multiplexer.ts";
import { sendTo, viewInterim, viewOf, type Server } from "./server.ts";
import { askOne } from "./view-answer.ts";

/**
 * Targets that have opened a session for nothing are told so: the client gets no id to end it with.
 * @throws McpError, ProxyError
 */
export async function initialize(server: Server, request: ClientRequest): Promise<McpAnswer> {
  const { naming, failOpen, down, stateless } = server;
  const { message, session, exchange } = request;
  if (naming.only !== undefined) return askOne(server, request, message, naming.only);
  const view = viewOf(server, request);
  const leave = async (): Promise<void> => {
    await Promise.all(naming.targets.map((target) => target.end(session, exchange)));
  };
  try {
    const answer = await fanOut(
      naming.targets.map((target) => ({ target, message })),
      {
        failOpen,
        debug: exchange.debug,
        down,
        send: (out) => sendTo(out.target, out.message, request),
        view: (interim, target) => viewInterim(server, interim, target, { view, session }),
        merge: (results) => responseTo(message.id ?? "null", mergeInitialize(results, request.version, stateless)),
      },
    );
    if (answer.only?.kind === "error") await leave();
    return answer.only === undefined ? { ...answer, messages: leaveUnlessResult(answer.messages, leave) } : answer;
  } catch (error) {
    await leave();
    throw error;
  }
}

/**
 * A target without the method makes the whole server one without it, also with FailOpen: its clients then begin with
 * `initialize`, which all targets may know.
 * @throws McpError, ProxyError
 */
export async function discover(server: Server, request: ClientRequest): Promise<McpAnswer> {
  const { naming, failOpen, down } = server;
  const { message } = request;
  if (naming.only !== undefined) return askOne(server, request, message, naming.only);
  const send = async (target: Target): Promise<McpAnswer> => {
    const answer = await sendTo(target, message, request);
    const isRefused = answer.body !== undefined && REFUSALS.has(answer.status);
    return isRefused ? answerWith(errorTo(request, undiscoverable())) : answer;
  };
  return fanOut(
    naming.targets.map((target) => ({ target, message })),
    {
      failOpen,
      debug: request.exchange.debug,
      down,
      send: (out) => send(out.target),
      // Nothing is said before the introduction.
      view: () => undefined,
      merge: (results, unserved) => {
        const merged = unserved === 0 ? mergeDiscover(results) : undefined;
        if (merged === undefined) throw undiscoverable();
        return responseTo(message.id ?? "null", merged);
      },
    },
  );
}

/** What servers answer that know no `server/discover`: they take it for a message without a session, or for no method. */
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 405]);

function undiscoverable(): McpError {
  return new McpError(ERROR_CODES.methodNotFound, "Method not found", { status: 404 });
}
