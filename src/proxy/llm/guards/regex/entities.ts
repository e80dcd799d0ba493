/** THE table of built-in entities of regex guards, by their name in the API. */
import { caSin } from "./ca-sin.ts";
import { creditCard } from "./credit-card.ts";
import { email } from "./email.ts";
import type { Entity } from "./entity.ts";
import { phoneNumber } from "./phone-number.ts";
import { ssn } from "./ssn.ts";

export const ENTITIES: Readonly<Record<string, Entity>> = {
  Ssn: ssn,
  CreditCard: creditCard,
  PhoneNumber: phoneNumber,
  Email: email,
  CaSin: caSin,
};
