/** Bytes that no tool comes to: the threshold is never crossed. */
const NEVER = 2 ** 30;

/**
 * How glibc's malloc serves a program that reads all rules of a table, works on them and ends: from huge pages, where
 * the kernel gives them to who asks (`/sys/kernel/mm/transparent_hugepage/enabled`: madvise), in large steps, and given
 * back by its end only. A change in a large table of the legacy variant takes a fifth less. Other C libraries know no
 * such variable, older glibc's not each name in it.
 */
const TUNABLES = [
  "glibc.malloc.hugetlb=1",
  `glibc.malloc.top_pad=${8 * 2 ** 20}`,
  `glibc.malloc.mmap_threshold=${NEVER}`,
  `glibc.malloc.trim_threshold=${NEVER}`,
].join(":");

/**
 * What goes into the environment of a tool for that; what another program has set for this process holds for its tools,
 * too.
 */
export function toolMemory(env: Readonly<Record<string, string | undefined>> = process.env): Record<string, string> {
  return env["GLIBC_TUNABLES"] === undefined ? { GLIBC_TUNABLES: TUNABLES } : {};
}
