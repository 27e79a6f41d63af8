import { expect, test } from "vitest";
import { readGinkgo } from "../src/specs/sig-network.ts";

const FAILED = `
••••••••••
------------------------------
• [FAILED] [12.345 seconds]
  [FAIL] while it ran, which is said again below

Summarizing 2 Failures:
  [FAIL] [sig-network] Services [It] should serve endpoints on same port
  k8s.io/kubernetes/test/e2e/network/service.go:4263
  [TIMEDOUT] [sig-network] DNS [It] should provide DNS for services
  k8s.io/kubernetes/test/e2e/network/dns_common.go:476

Ran 47 of 7579 Specs in 192.568 seconds
FAIL! -- 45 Passed | 2 Failed | 0 Pending | 7532 Skipped
`;

test("Ginkgo's summary: counts, and each failure once", () => {
  expect(readGinkgo(FAILED)).toEqual({
    passed: 45,
    failed: 2,
    ran: 47,
    failures: [
      "[sig-network] Services [It] should serve endpoints on same port",
      "[sig-network] DNS [It] should provide DNS for services",
    ],
  });
});

test("Ginkgo's summary: all passed", () => {
  const output = "Ran 47 of 7579 Specs in 95.2 seconds\nSUCCESS! -- 47 Passed | 0 Failed | 0 Pending | 7532 Skipped\n";
  expect(readGinkgo(output)).toEqual({ passed: 47, failed: 0, ran: 47, failures: [] });
});

test("a run that was cut off has no summary", () => {
  expect(readGinkgo("Will run 47 of 7579 specs\n•••")).toBeUndefined();
});
