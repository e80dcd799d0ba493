/** The order of execution, as data: the pipeline composes in this order and the reference documentation prints it. */

export const REQUEST_ORDER = [
  { name: "refusal", why: "a policy that could not be read closes what it governs before anything else runs" },
  { name: "timeouts", why: "the deadline counts from arrival, so every later step runs under it" },
  { name: "cors", why: "preflights carry no credentials, and a browser must be able to read a refusal" },
  { name: "api-key-authentication", why: "who is calling must be known before anything is decided by it" },
  { name: "authorization", why: "decides by the identity that authentication established" },
  { name: "local-rate-limit", why: "counts only calls that were let in" },
  { name: "transformation", why: "rewrites what is sent after all decisions on what was received" },
  { name: "csrf", why: "only a request that may go on is worth the question where it came from" },
  { name: "header-modifiers", why: "literal edits have the last word over computed ones" },
  { name: "direct-response", why: "last, so that limits and authentication count for it too" },
] as const;

export type PolicyName = (typeof REQUEST_ORDER)[number]["name"];
