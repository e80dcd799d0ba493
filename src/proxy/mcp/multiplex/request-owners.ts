/**
 * Which target works on a request of a client, so that a cancellation goes there. It is known in the thread that sent
 * the request; a cancellation that arrives elsewhere goes to all targets, which ignore ids that they do not know.
 */
import type { Session } from "../session/session.ts";
import type { Target } from "../targets/target.ts";

export class RequestOwners {
  readonly #sessions = new WeakMap<Session, Map<string, Target>>();

  /** @param id JSON text @returns what ends the entry */
  begin(session: Session, id: string, target: Target): () => void {
    const open = this.#sessions.get(session) ?? new Map<string, Target>();
    this.#sessions.set(session, open.set(id, target));
    return () => {
      if (open.get(id) === target) open.delete(id);
    };
  }

  find(session: Session, id: string): Target | undefined {
    return this.#sessions.get(session)?.get(id);
  }
}
