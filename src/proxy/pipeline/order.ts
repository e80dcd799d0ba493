/** The order of execution, as data: the pipeline composes in this order and the reference documentation prints it. */

export const REQUEST_ORDER = [
  { name: "refusal", why: "a policy that could not be read closes what it governs before anything else runs" },
  { name: "timeouts", why: "the deadline counts from arrival, so every later step runs under it" },
  { name: "cors", why: "preflights carry no credentials, and a browser must be able to read a refusal" },
  { name: "jwt-authentication", why: "who is calling must be known before anything is decided by it" },
  { name: "basic-authentication", why: "the kinds of credentials are independent: all that are set must pass" },
  { name: "api-key-authentication", why: "the last way to say who is calling" },
  { name: "ext-auth", why: "the service outside judges who was authenticated, and what it says counts for the rules" },
  { name: "authorization", why: "decides by the identity that authentication established" },
  { name: "retry", why: "its precondition sees the request as it was let in" },
  { name: "local-rate-limit", why: "counts only calls that were let in" },
  { name: "global-rate-limit", why: "asks outside only for what the replica's own limits let through" },
  { name: "buffer", why: "only what was let in is worth holding, and whoever reads the body comes later" },
  { name: "ext-proc", why: "a processor sees what was let in, and its work can be transformed further" },
  { name: "transformation", why: "rewrites what is sent after all decisions on what was received" },
  { name: "csrf", why: "only a request that may go on is worth the question where it came from" },
  { name: "response-buffer", why: "an answer is measured as the backend sent it, before it is transformed" },
  { name: "header-modifiers", why: "literal edits have the last word over computed ones" },
  { name: "host-rewrite", why: "a rewrite of the route, which follows, is more specific" },
  { name: "delay", why: "only what will be answered is held back" },
  { name: "direct-response", why: "last, so that limits and authentication count for it too" },
] as const;

export type PolicyName = (typeof REQUEST_ORDER)[number]["name"];
