/**
 * The session of an MCP client as one thread sees it: what its id holds, and what became known since. Any replica makes
 * the same of the id (`record.ts`), so nothing here may be needed by a later request, unless it can be found anew.
 */

/** What a client said of itself in `initialize`; targets that are entered later are told the same. */
export interface ClientInfo {
  /** Protocol version that the session speaks. */
  readonly version: string;
  /** JSON text of the client's capabilities. */
  readonly capabilities: string;
  readonly name: string;
  readonly clientVersion: string;
}

/** The session with one target. Calls of the client change it. */
export interface TargetSession {
  /** False until the target has answered `initialize`. */
  entered: boolean;
  /** Set while the target has lost a session that the client still has: unless it is entered anew, the client ends it. */
  isLost: boolean;
  /** Session id that the target issued; undefined when it issued none. */
  id: string | undefined;
  /** "address:port" of the endpoint that answered first, where the target is a Service. */
  endpoint: string | undefined;
  /** Set while the target is entered or healed; calls wait for it. */
  entering: Promise<void> | undefined;
}

export interface Session {
  /** The value of Mcp-Session-Id; undefined while `initialize` runs, and where the client has no session. */
  readonly id: string | undefined;
  readonly client: ClientInfo;
  /** Returns the session with a target; one that is not entered yet where the id does not name it. */
  target(name: string): TargetSession;
  /** Log level that the client asked for, as JSON text, and resources that it subscribed to, by target: for healing. */
  logLevel: string | undefined;
  readonly subscriptions: Map<string, Set<string>>;
  /**
   * Looks whether another thread has healed the session with a target, and goes on with what it was given.
   * @returns true when it has
   */
  refresh(target: string): boolean;
  /**
   * Tells the other threads of the replica that a target was entered anew in place of a session that it had lost. Of
   * threads that do so at once one is the first, and the others go on with its session.
   * @returns whether this thread was the first
   */
  publish(target: string, lostId: string | undefined): boolean;
}
