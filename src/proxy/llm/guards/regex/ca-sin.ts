/** Social insurance numbers of Canada: nine digits that pass the Luhn check. */
import { findGrouped, HYPHENS, passesLuhn, SPACES, type Entity, type Grouping } from "./entity.ts";

const GROUPINGS: readonly Grouping[] = [
  { lengths: [9], separators: "" },
  { lengths: [3, 3, 3], separators: HYPHENS + SPACES },
];

export const caSin: Entity = {
  mask: "<CA_SIN>",
  find: (text, digits) => findGrouped(text, digits, GROUPINGS, passesLuhn),
};
