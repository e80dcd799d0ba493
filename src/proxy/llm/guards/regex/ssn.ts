/** Social security numbers of the US: nine digits, whole or in groups. They have no check digit. */
import { findGrouped, HYPHENS, SPACES, type Entity, type Grouping } from "./entity.ts";

const GROUPINGS: readonly Grouping[] = [
  { lengths: [9], separators: "" },
  { lengths: [3, 2, 4], separators: `${HYPHENS}.${SPACES}` },
  { lengths: [5, 4], separators: HYPHENS },
  { lengths: [3, 6], separators: HYPHENS },
];

export const ssn: Entity = {
  mask: "<SSN>",
  find: (text, digits) => findGrouped(text, digits, GROUPINGS, () => true),
};
