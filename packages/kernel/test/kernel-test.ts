import { describe, inject, test } from "vitest";

const { CI = "" } = process.env;

/** Tests on the real kernel: skipped with the reason where they cannot run, a failure where CI is set. */
export function kernelSuite(name: string, define: () => void): void {
  const noKernel = inject("noKernel");
  if (noKernel === "") describe(name, { timeout: 30_000 }, define);
  else
    test(name, ({ skip }) => {
      if (CI !== "") throw new Error(`CI must run this: ${noKernel}`);
      skip(noKernel);
    });
}

/** A single one of them. */
export function kernelTest(name: string, body: () => Promise<void>): void {
  kernelSuite("on the kernel", () => test(name, body));
}
