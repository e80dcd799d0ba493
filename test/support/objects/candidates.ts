/** The objects of the property tests: sound ones from every corner of the schemas, and each with one change. */
import { mutated } from "./mutate.ts";
import { type Kind, objectOf } from "./kinds.ts";
import { placesOf } from "./places.ts";
import { Random } from "./random.ts";
import { soundSpec } from "./repair.ts";

export interface Candidate {
  /** Names the object in messages, so that it can be made again. */
  readonly title: string;
  readonly object: object;
  readonly isSound: boolean;
}

const RICHNESS = [0.1, 0.3, 0.5];
/** Far enough from each other that the objects of one seed are not those of the next. */
const SEED_STEP = 100_003;

/**
 * Made one after the other, as they are asked for.
 * @param count an even number: half of the objects are sound. @throws when a place of the schemas can have no object
 */
export function* candidatesOf(kind: Kind, count: number, seed: number): Generator<Candidate> {
  for (let at = 0; at < count / 2; at++) {
    const random = new Random(seed * SEED_STEP + at);
    // Each object is made around one place, so that deep fields are met as often as those at the top.
    const { steps } = random.pick(placesOf(kind));
    const title = `${kind.kind} ${at} of seed ${seed}, around spec.${steps.join(".")}`;
    const spec = soundSpec(kind, random, random.pick(RICHNESS), { steps });
    if (spec === undefined) throw new Error(`${title}: no sound object was found`);
    yield { title, object: plain(objectOf(kind, spec)), isSound: true };
    const changed = mutated(kind, spec, random);
    yield { title: `${title}, changed`, object: plain(objectOf(kind, changed)), isSound: false };
  }
}

/** As it arrives over the wire: what has no form in JSON is gone. */
function plain(object: object): object {
  return JSON.parse(JSON.stringify(object)) as object;
}
