import koffi from "koffi";
import { expect, test } from "vitest";
import { releaseMemory } from "../src/index.ts";

const BLOCKS = 40_000;
const BLOCK_BYTES = 1_000;

test("what was freed between what stays goes back to the kernel", async () => {
  const libc = koffi.load(null);
  const [malloc, free] = [libc.func("void *malloc(size_t)"), libc.func("void free(void *)")];
  const blocks = Array.from({ length: BLOCKS }, () => malloc(BLOCK_BYTES));
  const last = blocks.pop();
  for (const block of blocks) free(block);
  const before = process.memoryUsage.rss();
  await releaseMemory();
  expect(before - process.memoryUsage.rss()).toBeGreaterThan((BLOCKS * BLOCK_BYTES) / 2);
  free(last);
});
