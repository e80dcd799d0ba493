/** Built-in entities of regex guards: spellings that match, spellings that do not, and borders of words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assertProperty } from "../../../../support/fixtures/seed.ts";
import { caSin } from "../../../../../src/proxy/llm/guards/regex/ca-sin.ts";
import { creditCard } from "../../../../../src/proxy/llm/guards/regex/credit-card.ts";
import { email } from "../../../../../src/proxy/llm/guards/regex/email.ts";
import { digitRuns, passesLuhn, type Entity } from "../../../../../src/proxy/llm/guards/regex/entity.ts";
import { phoneNumber } from "../../../../../src/proxy/llm/guards/regex/phone-number.ts";
import { ssn } from "../../../../../src/proxy/llm/guards/regex/ssn.ts";

interface Case {
  readonly entity: Entity;
  readonly match: readonly string[];
  readonly pass: readonly string[];
}

const CASES: Readonly<Record<string, Case>> = {
  Ssn: {
    entity: ssn,
    match: [
      "123456789",
      "123-45-6789",
      "123.45.6789",
      "123 45 6789",
      "12345-6789",
      "123-456789",
      "000-00-0000",
      "987654321",
      "078-05-1120",
      "900-12-3456",
      "219 09 9999",
      "219\u00a009\u00a09999",
      "219\u202f09\u202f9999",
      "219\u201109\u20119999",
      "219\u201309\u20139999",
      "12345\u20116789",
    ],
    pass: [
      "12345678",
      "1234567890",
      "123-45-678",
      "123-45-67890",
      "12-345-6789",
      "123--45-6789",
      "123-45 6789",
      "123-45\u20116789",
      "123\u201445\u20146789",
      "a123456789",
      "123456789_",
      "123_45_6789",
      "12345.6789",
      "123,45,6789",
      "١٢٣٤٥٦٧٨٩",
      "",
    ],
  },
  CaSin: {
    entity: caSin,
    match: [
      "046454286",
      "046 454 286",
      "046-454-286",
      "130692544",
      "130 692 544",
      "130-692-544",
      "193456787",
      "193-456-787",
      "193\u00a0456\u00a0787",
      "193\u202f456\u202f787",
      "193\u2011456\u2011787",
      "193\u2010456\u2010787",
      "000 000 000",
      "990000002",
    ],
    pass: [
      "046454287",
      "046 454 287",
      "123456789",
      "123-456-789",
      "046.454.286",
      "046 454-286",
      "046\u2014454\u2014286",
      "046\u2009454\u2009286",
      "04-6454-286",
      "046-454286",
      "x046454286",
      "0464542860",
      "46454286",
      "046  454  286",
    ],
  },
  CreditCard: {
    entity: creditCard,
    match: [
      "4111111111111111",
      "4111 1111 1111 1111",
      "4111-1111-1111-1111",
      "4222222222222",
      "5105105105105100",
      "5555 5555 5555 4444",
      "378282246310005",
      "3782 822463 10005",
      "3782-822463-10005",
      "6011 1111 1111 1117",
      "30569309025904",
      "3056 930902 5904",
      "3530111333300000",
      "6304 0000 0000 0000",
      "135412345678911",
      "4000000000000000006",
      "4111\u00a01111\u00a01111\u00a01111",
      "4111\u202f1111\u202f1111\u202f1111",
      "4111\u20111111\u20111111\u20111111",
      "3782\u2013822463\u201310005",
      "2223003122003222",
      "2221 0000 0000 0009",
      "2720-9900-0000-0007",
    ],
    pass: [
      "4111111111111112",
      "4111 1111 1111 1112",
      "2220000000000000",
      "2721000000000004",
      "222300312200328",
      "5610591081018250",
      "411111111111",
      "41111111111111111111",
      "4111.1111.1111.1111",
      "4111  1111  1111  1111",
      "4111_1111_1111_1111",
      "a4111111111111111",
      "4111111111111111b",
      "0000000000000000",
      "1700000000004",
      "411-1111-1111-11111",
      "7000000000000000",
    ],
  },
  Email: {
    entity: email,
    match: [
      "bob@example.com",
      "Bob.Smith@Example.COM",
      "bob+tag@example.co.uk",
      "b@x.io",
      "first_last@sub-domain.example.org",
      "o'hara@example.ie",
      "user%relay@example.com",
      "1234@example.com",
      "bob@xn--bcher-kva.example",
      "jürgen@bücher.example",
      "a.b-c_d@mail.example.museum",
      "x=y@example.com",
    ],
    pass: [
      "bob@localhost",
      "bob@",
      "@example.com",
      "bob.example.com",
      "bob@.com",
      "bob@example",
      "bob@example.c",
      "bob @example.com",
      "bob@ example.com",
      "bob@-example.com",
      "bob.@example.com",
      "bob@192.168.0.1",
      "bob@example..com",
      "@",
    ],
  },
  PhoneNumber: {
    entity: phoneNumber,
    match: [
      "+1 650 253 0000",
      "+16502530000",
      "(650) 253-0000",
      "650-253-0000",
      "650.253.0000",
      "6502530000",
      "1-800-253-0000",
      "+1 (416) 967-1111",
      "416 967 1111",
      "+44 20 7946 0958",
      "020 7946 0958",
      "+44 (0)20 7946 0958",
      "07911 123456",
      "0044 20 7946 0958",
      "+49 30 901820",
      "030 901820",
      "0151 23456789",
      "+49 (0)89 2180-0",
      "+972 2 530 0000",
      "054-123-4567",
      "+91 98765 43210",
      "98765 43210",
      "+91-11-2345-6789",
      "+55 11 96123-4567",
      "(11) 96123-4567",
      "011 55 11 2345-6789",
    ],
    pass: [
      "253-0000",
      "123-456-7890",
      "555-123-4567",
      "+33 1 42 68 53 00",
      "+1 242 322 0000",
      "+7 495 123 4567",
      "1700000000",
      "123-45-67890",
      "2024-01-15 12",
      "192.168.100.200",
      "3.14159265358979",
      "20 7946 0958",
      "a6502530000",
      "6502530000x",
      "12345",
      "650 253 00000",
      "1.2.3.4.5.6.7.8.9.0",
      "+1 150 253 0000",
    ],
  },
};

for (const [name, { entity, match, pass }] of Object.entries(CASES)) {
  const found = (text: string): string[] =>
    entity.find(text, digitRuns(text)).map(({ start, end }) => text.slice(start, end));

  test(`${name} finds each of its spellings, alone and in a sentence`, () => {
    assert.ok(match.length >= 10);
    for (const text of match) {
      assert.deepEqual(found(text), [text]);
      assert.deepEqual(found(`before: ${text}, "${text}"\n${text}`), [text, text, text], text);
      assert.deepEqual(found(`(${text})`).length, 1, text);
      assert.deepEqual(found(`«${text}»`), [text]);
    }
  });

  test(`${name} leaves other text alone`, () => {
    assert.ok(pass.length >= 10);
    for (const text of pass) assert.deepEqual(found(text), [], text);
    for (const text of pass) assert.deepEqual(found(`the value is ${text} here`), [], text);
  });

  test(`${name} finds only parts of the text, in order`, () => {
    const piece = fc.oneof(
      fc.constantFrom(...match, ...pass),
      fc.string({ maxLength: 6 }),
      fc.constantFrom(" ", "-", "."),
    );
    assertProperty(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const text = pieces.join("");
        let at = 0;
        for (const { start, end } of entity.find(text, digitRuns(text))) {
          assert.ok(start >= at && end > start && end <= text.length);
          at = end;
        }
      }),
    );
  });
}

test("the Luhn check finds every single wrong digit", () => {
  const number = "4111111111111111";
  assert.ok(passesLuhn(number));
  for (let at = 0; at < number.length; at++)
    for (let digit = 0; digit <= 9; digit++) {
      const changed = number.slice(0, at) + digit + number.slice(at + 1);
      assert.equal(passesLuhn(changed), changed === number);
    }
});
