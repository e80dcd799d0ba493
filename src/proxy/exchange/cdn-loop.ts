/**
 * Detects forwarding loops with CDN-Loop (RFC 8586). Listeners read the field and answer 508 when a request has passed
 * through gwproxy too often; backends and callouts append an entry to every request that they send.
 */

/** Maximum number of passes through data planes of any Gateway; not configurable. */
const MAX_PASSES = 10;
/** The cdn-id of gwproxy (RFC 8586 §2). */
const NAME = "gwproxy";
/** Matches an entry whose quotes and parameters are well-formed (RFC 8586 §2). */
const ELEMENT =
  /^[^\s";]+(?:[\t ]*;[\t ]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[^"\\]|\\.)*"))?)*$/;

/**
 * Returns the entry for requests whose destination the client chose, which may be this data plane itself.
 * @param replica identifies this process; must be a token
 */
export function replicaEntry(replica: string): string {
  return `${NAME};i=${replica}`;
}

/**
 * @param received entries that the request arrived with
 * @param entry from `replicaEntry`; by default the name alone
 */
export function appendPass(received: string | undefined, entry: string = NAME): string {
  return received === undefined ? entry : `${received}, ${entry}`;
}

/** @param received the values of all CDN-Loop fields, joined by commas */
export function isLoop(received: string, replica: string): boolean {
  // Only this replica knows its number, so any occurrence in the value means a loop.
  return received.includes(replica) || countPasses(received) > MAX_PASSES;
}

function countPasses(received: string): number {
  const elements = splitElements(received).map((element) => element.trim());
  // A quote that a client opens must not hide the entries that proxies append after it: split a malformed list at every
  // comma.
  const isSound = elements.every((element) => element === "" || ELEMENT.test(element));
  return (isSound ? elements : received.split(",")).filter(isOurs).length;
}

function isOurs(element: string): boolean {
  const semicolon = element.indexOf(";");
  const name = semicolon < 0 ? element : element.slice(0, semicolon);
  return name.trim().toLowerCase() === NAME;
}

/** Splits at commas outside of quoted strings (RFC 9110 §5.6.1, §5.6.4). */
function splitElements(value: string): string[] {
  const elements: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < value.length; at++) {
    const character = value[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (character === "\\" && isQuoted) at++;
    else if (character === "," && !isQuoted) {
      elements.push(value.slice(start, at));
      start = at + 1;
    }
  }
  elements.push(value.slice(start));
  return elements;
}
