/** XXH3 against vectors that the C library (xxHash 0.8.4) computed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Uint64 } from "../../../src/lib/uint64.ts";
import { xxh3 } from "../../../src/lib/xxh3.ts";

/** Bytes n, then their hashes with the seeds 9E3779B185EBCA87, C2B2AE3D27D4EB4F and 0. Byte i is (131 i + 7) mod 256. */
// oxfmt-ignore
const VECTORS: readonly (readonly [number, string, string, string])[] = [
  [0, "07f70f819703314d", "1e744138e34556f4", "2d06800538d394c2"],
  [1, "69f37fe502a5ce84", "6207b481a9a56125", "4c5cca45d0f4811f"],
  [2, "d2addd93c8ea4004", "fbb704bdb0a04017", "29c60963cbfa4e6e"],
  [3, "82ee0d8c3a491c38", "7d030ddd23e2879a", "6e3e2670e61106ac"],
  [4, "caf8afa7ba97cb0e", "c657eaddf1ea084b", "5c4c63133443d03f"],
  [5, "3691473950da65b1", "abd069f1698ba118", "49f5eb3111280b63"],
  [7, "b3ffbf2f785ab446", "8e8d17ed6d4418f7", "46a5c724d51fe43f"],
  [8, "3b4c70cbe3ebc00d", "9d9b523784bccaa9", "f9fd4dd0b04d78f5"],
  [9, "99fd9784f4efdf49", "355b929b224b4380", "7c20df9712c26edf"],
  [12, "c54c927cf06e5de6", "5f1c9a7423e4aa59", "16d2dff54dc2ee45"],
  [15, "150f36c1fb47033c", "44e935752d4461c3", "b345a7b2698ba575"],
  [16, "fde04540eae27b52", "c39308a0b5378faa", "86abf6baccea0858"],
  [17, "c98530740c07e43b", "4626e0279889a406", "b58bf5dc5022d071"],
  [31, "0d10c3bafab67d2a", "3c19b181b38fee5a", "48442fcd5518b086"],
  [32, "3d0f061130a3a7b6", "8de4d8421091c798", "e3712ed84c04a66e"],
  [33, "049e51884eedf6b4", "beec352d66e9062e", "a4dee99b093e1f73"],
  [63, "c654e91674fdc32e", "764fe25de55de19d", "30ca01f63dcc223b"],
  [64, "e5e83586117a92e2", "a50ccc7c6d6c474e", "1291d2d4042330dd"],
  [65, "6eac5c6eab517c73", "50efce8f4cf9ea93", "97c6bf83217e5ec9"],
  [96, "c83722d12c95d160", "8acb31ef0648c634", "81296929fc063365"],
  [97, "d42989c8133fe1d9", "6186efd727130676", "f145a45b658ab9dd"],
  [127, "ff4c9eb8c56ddf05", "7b1817292221a627", "ed4cf62104020db5"],
  [128, "d6b287b434c3eac1", "17104ba6dfb1291c", "10d17f72c0ccba41"],
  [129, "efcb0a611944c6e1", "d4fbc02b1f8a0552", "1648bdc3db49d1a2"],
  [143, "a1344524782a4711", "b16737fdea98a5b5", "d05ced598f7f87b3"],
  [144, "22e8df24f509675b", "53815da8b727c069", "b46dbfc6d9e31aba"],
  [145, "99c6441eafad82f1", "e0faa27434e35835", "36411de335384cfb"],
  [192, "886f439ba2eb321c", "a829920a91c51a3b", "daf64f63dc7d5e36"],
  [239, "8b17b8ad778fd4c7", "f6cee9a08550cf24", "f0d154819adb16cd"],
  [240, "c587312c2ec9d377", "62ac340a9e4150e9", "b6cfaf343fab81e6"],
  [241, "033c6361af37452e", "75685610525a8a27", "956cae592c67279e"],
  [255, "31c35225d9ba374f", "6df7c3ddf5e51012", "64a6073025eb7929"],
  [256, "51c263184a535324", "cbeeca028867eacb", "b15e550733c5dfac"],
  [512, "c0a69ef7c8ada7a2", "37b77b5392b0ae88", "a0e9790eb93990d7"],
  [1023, "296835292bcb61b7", "3c18ee117ee4e33c", "a94ffcd2254368e4"],
  [1024, "ee8f8ccb108ecc9d", "132bc2ec92f10e09", "70bd377d9574f4bb"],
  [1025, "431f8be5fa00d4d2", "ef83d9867c5b874b", "66c4487c41e127a7"],
  [1088, "6ae3e808214961a5", "564685a788d95234", "f43dc77e28a9acbc"],
  [2048, "5d1ea6aa04782779", "806ac480d2fb115d", "8b46caa67dab3a30"],
  [2049, "b383c434af15d2f1", "7a032e9c84403a8d", "581cd184fd9b76c5"],
  [5000, "7bdad17eb1d5b106", "26ebad3bdeece46c", "e4007929540f095c"],
];

const SEEDS: readonly Uint64[] = [
  { high: 0x9e37_79b1, low: 0x85eb_ca87 },
  { high: 0xc2b2_ae3d, low: 0x27d4_eb4f },
  { high: 0, low: 0 },
];

test("every length class gives what the C library gives, with each seed", () => {
  for (const [length, ...expected] of VECTORS) {
    const bytes = Buffer.from(Array.from({ length }, (_, at) => (at * 131 + 7) & 255));
    assert.deepEqual(
      SEEDS.map((seed) => hex(xxh3(bytes, seed))),
      expected,
      `${length} bytes`,
    );
  }
});

test("a piece of a larger buffer hashes as its own bytes do", () => {
  const whole = Buffer.from("xxalicexx");
  assert.deepEqual(xxh3(whole.subarray(2, 7), SEEDS[0] as Uint64), xxh3(Buffer.from("alice"), SEEDS[0] as Uint64));
});

function hex({ high, low }: Uint64): string {
  return high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
}
