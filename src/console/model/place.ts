/**
 * The place in the console that the fragment of the URL names, such as `#/routes/HTTPRoute/default/shop`, so that links
 * and the browser's history work. app.tsx reads it.
 */

export const VIEWS = ["overview", "routes", "backends", "models", "trace"] as const;
export type View = (typeof VIEWS)[number];

export interface Place {
  readonly view: View;
  /** Key of the chosen route, or of the listener whose routes are listed; empty when there is none. */
  readonly route: string;
  readonly listener: string;
}

/** @param hash with or without its "#"; a text that names no view leads to the overview */
export function parsePlace(hash: string): Place {
  const [path = "", search = ""] = hash.replace(/^#?\/?/, "").split("?");
  const [first = "", ...rest] = path.split("/");
  const view = VIEWS.find((each) => each === first) ?? "overview";
  const listener = new URLSearchParams(search).get("listener") ?? "";
  return { view, route: view === "routes" ? decodeText(rest.join("/")) : "", listener };
}

export function printPlace({ view, route = "", listener = "" }: Partial<Place> & { readonly view: View }): string {
  const tail = route === "" ? "" : `/${route.split("/").map(encodeURIComponent).join("/")}`;
  return `#/${view}${tail}${listener === "" ? "" : `?${new URLSearchParams({ listener }).toString()}`}`;
}

/** Returns the text itself where it is not percent-encoded as it should be. */
function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
