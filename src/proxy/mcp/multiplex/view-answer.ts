/** Rewrites the answer of one target for the client: what it says meanwhile, and its response. */
import type { Message } from "../message/message.ts";
import type { McpAnswer, Target } from "../targets/target.ts";
import { answerWith, streamOf } from "./answers.ts";
import type { ClientRequest } from "./multiplexer.ts";
import { viewResponse } from "./rewriting/results.ts";
import { sendTo, viewInterim, viewOf, type Server } from "./server.ts";
import type { View } from "./naming/view.ts";

export interface AnswerView {
  readonly server: Server;
  readonly request: ClientRequest;
  readonly view: View<Target>;
  readonly target: Target;
  /** Rewrites the response. */
  readonly viewResponse: (message: Message) => Message;
  /** Called when the answer is complete, or was given up; at least once. */
  readonly done?: () => void;
}

/** An answer with an error status is passed on as it is. */
export function viewAnswer(answer: McpAnswer, how: AnswerView): McpAnswer {
  const { body, only } = answer;
  if (body !== undefined || only !== undefined) {
    how.done?.();
    return only === undefined ? answer : answerWith(how.viewResponse(only));
  }
  const cancel = (): void => {
    how.done?.();
    answer.cancel();
  };
  return streamOf(viewMessages(answer.messages, how, cancel), cancel);
}

async function* viewMessages(
  messages: McpAnswer["messages"],
  { server, request, view, target, viewResponse: viewFinal }: AnswerView,
  cancel: () => void,
): AsyncGenerator<Message> {
  try {
    for await (const message of messages) {
      if (message.kind === "result" || message.kind === "error") {
        yield viewFinal(message);
        return;
      }
      const seen = viewInterim(server, message, target, { view, session: request.session });
      if (seen !== undefined) yield seen;
    }
  } finally {
    cancel();
  }
}

/** Sends a request that names no item to one target. @throws McpError, ProxyError */
export async function askOne(
  server: Server,
  request: ClientRequest,
  message: Message,
  target: Target,
): Promise<McpAnswer> {
  const view = viewOf(server, request);
  const answer = await sendTo(target, message, request);
  const see = (response: Message): Message => viewResponse(response, request.method.name, target, view);
  return viewAnswer(answer, { server, request, view, target, viewResponse: see });
}
