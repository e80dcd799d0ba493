/**
 * CDN-Loop (RFC 8586): every request that leaves for a backend or for a service of a policy says that it came through here,
 * and a request that says so too often is answered 508. Read by listeners, written by backends and callouts.
 */

/** How often a request may have passed through data planes of any Gateway; no setting changes it. */
const MAX_PASSES = 10;
/** Our cdn-id. */
const NAME = "gwproxy";
/** What an entry without a quote or a parameter of its own looks like; anything else is read slowly. */
const ELEMENT =
  /^[^\s";]+(?:[\t ]*;[\t ]*[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"(?:[^"\\]|\\.)*"))?)*$/;

/** The entry for requests whose destination the client chose: it may be this data plane itself. @param replica a token */
export function replicaEntry(replica: string): string {
  return `${NAME};i=${replica}`;
}

/** @param received entries that the request arrived with @param entry of `replicaEntry`; the name alone by default */
export function appendPass(received: string | undefined, entry: string = NAME): string {
  return received === undefined ? entry : `${received}, ${entry}`;
}

/** @param received the values of all fields, joined by commas */
export function isLoop(received: string, replica: string): boolean {
  // Nobody else knows the number, wherever in the value it stands.
  return received.includes(replica) || countPasses(received) > MAX_PASSES;
}

function countPasses(received: string): number {
  const elements = splitElements(received).map((element) => element.trim());
  // A quote that a client opens must not hide the entries that are appended behind it: malformed lists have no quotes.
  const isSound = elements.every((element) => element === "" || ELEMENT.test(element));
  return (isSound ? elements : received.split(",")).filter(isOurs).length;
}

function isOurs(element: string): boolean {
  const semicolon = element.indexOf(";");
  const name = semicolon < 0 ? element : element.slice(0, semicolon);
  return name.trim().toLowerCase() === NAME;
}

/** Splits at the commas outside of quoted strings (RFC 9110 5.6.1). */
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
