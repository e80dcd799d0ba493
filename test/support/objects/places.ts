/** Every place of a kind that its schemas tell apart: each field of each component once, on the shortest way to it. */
import type { Schema } from "../../../codegen/schema.ts";
import type { Site, Steps } from "./generate.ts";
import { generator, type Kind } from "./kinds.ts";

export interface Place {
  readonly steps: Steps;
  readonly site: Site;
  /** The object that holds it; undefined for `spec` itself. */
  readonly parent: Site | undefined;
}

const known = new Map<string, readonly Place[]>();

export function placesOf(kind: Kind): readonly Place[] {
  const found = known.get(kind.kind) ?? search(kind);
  known.set(kind.kind, found);
  return found;
}

function search(kind: Kind): Place[] {
  const places: Place[] = [];
  const open: Place[] = [{ steps: [], site: kind.spec, parent: undefined }];
  const entered = new Set<Schema["properties"]>();
  // The list grows while it is walked: the shortest ways come first.
  for (const place of open) {
    places.push(place);
    const { properties } = place.site.schema;
    if (properties !== undefined) {
      if (entered.has(properties)) continue;
      entered.add(properties);
    }
    for (const [step, site] of generator.below(place.site)) {
      open.push({ steps: [...place.steps, step], site, parent: place.site });
    }
  }
  return places;
}
