/** Literal edits of request and response headers, in the order set, add, remove of the Gateway API filters. */
import type { HeaderChange, HeaderModifiers } from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { HeaderList } from "../../lib/header-list.ts";
import type { Exchange, Reply } from "../exchange/exchange.ts";
import type { Policy } from "./policy.ts";

type Edit = (headers: HeaderList) => void;

export const headerModifiers: Policy<HeaderModifiers> = {
  compile({ request, response }) {
    const editRequest = compileRequestEdit(request);
    const editResponse = compileEdit(response);
    const onReply = (reply: Reply): Reply => {
      editResponse?.(reply.headers);
      return reply;
    };
    return function headerModifiers(exchange, next) {
      editRequest?.(exchange);
      if (editResponse === undefined) return next();
      const reply = next();
      return reply instanceof Promise ? reply.then(onReply) : onReply(reply);
    };
  },
};

/** Host sets the authority of the request instead of a header field. */
function compileRequestEdit(change: HeaderChange | undefined): ((exchange: Exchange) => void) | undefined {
  const edit = compileEdit(change);
  const host = [...(change?.set ?? []), ...(change?.add ?? [])].findLast(({ name }) => name.toLowerCase() === "host");
  if (edit === undefined) return undefined;
  return (exchange) => {
    edit(exchange.requestHeaders);
    if (host !== undefined) exchange.host = host.value;
  };
}

function compileEdit(change: HeaderChange | undefined): Edit | undefined {
  if (change === undefined) return undefined;
  const set = change.set.map(({ name, value }) => ({ name, value }));
  const add = change.add
    .map(({ name, value }) => ({ name, value }))
    .filter(({ name }) => name.toLowerCase() !== "host");
  const remove = change.remove.map((name) => name.toLowerCase());
  return (headers) => {
    for (const { name, value } of set) headers.set(name, value);
    for (const { name, value } of add) headers.add(name, value);
    for (const name of remove) headers.remove(name);
  };
}
